//moonpath:goroutines

package netlab

import (
	"fmt"
	"os"
	"runtime"

	"golang.org/x/sys/unix"
)

// device is the name of the TUN device in each namespace.
const device = "line0"

// openDevice makes a TUN device in the namespace. It is gone when the file is closed.
func openDevice(namespace string) (*os.File, error) {
	type result struct {
		f   *os.File
		err error
	}
	got := make(chan result)
	go func() {
		// Never unlocked, so that the thread, which is in another namespace now, ends with the goroutine.
		runtime.LockOSThread()
		f, err := openDeviceOnThread(namespace)
		got <- result{f, err}
	}()
	r := <-got
	return r.f, r.err
}

func openDeviceOnThread(namespace string) (*os.File, error) {
	ns, err := os.Open(namespace)
	if err != nil {
		return nil, err
	}
	defer ns.Close()
	if err := unix.Setns(int(ns.Fd()), unix.CLONE_NEWNET); err != nil {
		return nil, fmt.Errorf("setns: %w", err)
	}
	fd, err := unix.Open("/dev/net/tun", unix.O_RDWR|unix.O_CLOEXEC|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, fmt.Errorf("/dev/net/tun: %w", err)
	}
	request, err := unix.NewIfreq(device)
	if err == nil {
		request.SetUint16(unix.IFF_TUN | unix.IFF_NO_PI)
		err = unix.IoctlIfreq(fd, unix.TUNSETIFF, request)
	}
	if err != nil {
		unix.Close(fd)
		return nil, fmt.Errorf("TUN device: %w", err)
	}
	return os.NewFile(uintptr(fd), device), nil
}
