package embedded

import "syscall"

// dieWithParent asks the kernel for a fast shutdown should we die first.
func dieWithParent(a *syscall.SysProcAttr) { a.Pdeathsig = syscall.SIGINT }
