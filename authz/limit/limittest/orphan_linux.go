package limittest

import (
	"os/exec"
	"syscall"
)

// noOrphan lets the kernel end a server whose test was killed, by a timeout for
// example, before it could clean up.
func noOrphan(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
}
