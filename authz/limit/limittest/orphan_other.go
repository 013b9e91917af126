//go:build !linux

package limittest

import "os/exec"

// noOrphan does nothing where the kernel has no such wish: a test that is killed
// leaves its server running.
func noOrphan(*exec.Cmd) {}
