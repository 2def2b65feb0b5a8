//go:build !linux

package main

import "syscall"

// dieWithParent can do nothing here: only Linux tells children of a parent's death.
func dieWithParent() *syscall.SysProcAttr { return nil }
