package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/alecthomas/kong"
)

func main() { os.Exit(start()) }

// start runs the process's own command line and returns its exit code.
func start() int { return run(os.Args[1:], streams{os.Stdin, os.Stdout, os.Stderr}) }

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

// run parses and runs one command line. The first SIGINT or SIGTERM ends the
// command's context; the second ends the process at once, as signals do.
func run(args []string, std streams) (exit int) {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop)
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
