package app

import (
	"os"

	"golang.org/x/sys/windows"
)

// lockFile takes the lock of an open file, which the system gives back when
// the process ends, whatever way it does.
func lockFile(f *os.File) error {
	const flags = windows.LOCKFILE_EXCLUSIVE_LOCK | windows.LOCKFILE_FAIL_IMMEDIATELY
	return windows.LockFileEx(windows.Handle(f.Fd()), flags, 0, 1, 0, &windows.Overlapped{})
}
