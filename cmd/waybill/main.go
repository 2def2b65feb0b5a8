package main

import (
	"context"
	"fmt"
	"io"
	"log"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/alecthomas/kong"
)

func main() { os.Exit(start()) }

// start runs the process's own command line and returns its exit code.
func start() int {
	// net/http's client tells the standard logger what a receiver says unasked, and
	// that may quote our request, secrets and payload included. Nothing of the product
	// logs there.
	log.SetOutput(io.Discard)
	return run(os.Args[1:], streams{os.Stdin, os.Stdout, os.Stderr})
}

// streams are where a command reads and writes.
type streams struct {
	in  io.Reader
	out io.Writer
	err io.Writer
}

// invocation is one call of the program: what every command gets to work with.
type invocation struct {
	streams
	globals
}

// graceOfSignals is how long signals are taken for repetitions of the first: some
// supervisors signal a process and its group.
const graceOfSignals = 2 * time.Second

// run parses and runs one command line. The first SIGINT or SIGTERM ends the
// command's context; another one, two seconds later or more, ends the process at once,
// as signals do.
func run(args []string, std streams) (exit int) {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, func() { time.AfterFunc(graceOfSignals, stop) })
	var c cli
	defer func() {
		if p := recover(); p != nil {
			exit = report(std.err, c.DatabaseURL, fmt.Errorf("this is a bug of waybill's: %v", p))
		}
	}()
	command, exit, err := parse(&c, args, std)
	if err == nil && exit < 0 {
		command.BindTo(ctx, (*context.Context)(nil))
		exit, err = exitDone, command.Run(&invocation{std, c.globals})
	}
	if err != nil {
		exit = report(std.err, c.DatabaseURL, err)
	}
	return exit
}

// parse reads flags and environment. The exit code is below zero unless all is done
// already, as after --help.
func parse(c *cli, args []string, std streams) (command *kong.Context, exit int, err error) {
	exit = -1
	parser, err := kong.New(c, kong.Name("waybill"), kong.Description(description),
		kong.DefaultEnvars("WAYBILL"), kong.Writers(std.out, std.err), kong.Exit(func(code int) { exit = code }),
		kong.ConfigureHelp(kong.HelpOptions{Compact: true, WrapUpperBound: 100}))
	if err != nil {
		return nil, exit, err
	}
	command, err = parser.Parse(args)
	switch {
	case exit >= 0:
		return nil, exit, nil
	case err != nil:
		return nil, exit, usageError(err.Error() + hint(args))
	}
	return command, exit, nil
}

func hint(args []string) string {
	if len(args) == 0 {
		return "; see: waybill --help"
	}
	return ""
}
