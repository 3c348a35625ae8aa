//go:build unix

package app

import (
	"os"
	"syscall"
)

// lockFile takes the lock of an open file, which the system gives back when
// the process ends, whatever way it does.
func lockFile(f *os.File) error {
	return syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
}
