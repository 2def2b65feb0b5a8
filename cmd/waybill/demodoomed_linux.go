package main

import "syscall"

// dieWithParent asks the kernel to kill a child should we die without doing so.
func dieWithParent() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
}
