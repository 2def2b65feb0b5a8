package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"strings"

	"waybill/adapters/postgres"
	"waybill/domain"
)

// The exit codes.
const (
	exitDone    = 0
	exitFailed  = 1
	exitUsage   = 2
	exitRefused = 3
	exitFaulty  = 4
)

// usageError is what is wrong with a command line, in words for who typed it.
type usageError string

// Error returns the words.
func (u usageError) Error() string { return string(u) }

func usagef(format string, args ...any) error { return usageError(fmt.Sprintf(format, args...)) }

// report prints why a command did not succeed, in one line, and returns its exit
// code.
func report(to io.Writer, databaseURL string, err error) int {
	exit, code, text := verdict(err)
	_, _ = fmt.Fprintf(to, "waybill: %s: %s\n", code, plain(scrub(text, databaseURL)))
	return exit
}

// verdict tells refusals from wrong usage and from faults.
func verdict(err error) (exit int, code, text string) {
	var refused *domain.Error
	var usage usageError
	switch {
	case errors.As(err, &refused):
		return exitOf(refused.Kind), refused.Code, refused.Message
	case errors.As(err, &usage):
		return exitUsage, "usage", usage.Error()
	case errors.Is(err, errFaulty):
		return exitFaulty, "verification_failed", oneLine(err)
	case errors.Is(err, errUnproven):
		return exitFaulty, "not_proven", oneLine(err)
	case errors.Is(err, context.Canceled):
		return exitFailed, "interrupted", "stopped before it was done"
	case postgres.Transient(err) && !ofSystem(err):
		return exitFailed, domain.ErrStorageUnavailable.Code, oneLine(err)
	}
	return exitFailed, "failed", oneLine(err)
}

// exitOf is the exit code of a kind of refusal.
func exitOf(k domain.Kind) int {
	switch k {
	case domain.Invalid:
		return exitUsage
	case domain.Unavailable:
		return exitFailed
	}
	return exitRefused
}

func oneLine(err error) string { return strings.Join(strings.Fields(err.Error()), " ") }

// ofSystem reports a fault of a file or of our own address, whose error number
// would pass for one of the connection to the database.
func ofSystem(err error) bool {
	var op *net.OpError
	return errors.As(err, new(*fs.PathError)) || errors.As(err, new(*os.LinkError)) ||
		errors.As(err, &op) && op.Op == "listen"
}
