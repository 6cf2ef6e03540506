package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"os"
	"os/signal"
	"syscall"
	"time"
)

const usage = `usage:
  yardstick target [--addr 127.0.0.1:0] [--memory BYTES]
      prints {"addr":...,"base":...,"length":...} when ready; serves until SIGTERM, or until its standard input ends
      if that is a pipe; then prints {"cpu_seconds":...}
  yardstick init --addr HOST:PORT --base ADDRESS [--op write|read] [--block BYTES] [--batch N] [--threads N]
      [--duration 1s] [--turns] [--json]
      measures against a yardstick, a moonpath or a C++ target; --turns sends a whole batch before it reads any answer,
      which is faster, but possible only because the batch is bounded`

// errUsage marks what the caller must change on the command line.
var errUsage = errors.New("wrong usage")

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	err := dispatch(ctx, os.Args[1:], os.Stdin, os.Stdout)
	switch {
	case errors.Is(err, flag.ErrHelp):
		fmt.Println(usage)
	case errors.Is(err, errUsage):
		fmt.Fprintf(os.Stderr, "yardstick: %v\n%s\n", err, usage)
		os.Exit(2)
	case err != nil:
		fmt.Fprintln(os.Stderr, "yardstick:", err)
		os.Exit(1)
	}
}

func dispatch(ctx context.Context, args []string, in *os.File, out io.Writer) error {
	if len(args) == 0 {
		return fmt.Errorf("%w: name a role, target or init", errUsage)
	}
	switch role := args[0]; role {
	case "target":
		return runTarget(ctx, args[1:], in, out)
	case "init":
		return runInitiator(ctx, args[1:], out)
	case "help", "-h", "--help":
		return flag.ErrHelp
	default:
		return fmt.Errorf("%w: no role %q, only target and init", errUsage, role)
	}
}

func parse(flags *flag.FlagSet, args []string) error {
	flags.SetOutput(io.Discard)
	err := flags.Parse(args)
	switch {
	case errors.Is(err, flag.ErrHelp):
		return err
	case err != nil:
		return fmt.Errorf("%w: %w", errUsage, err)
	case flags.NArg() > 0:
		return fmt.Errorf("%w: %q is not a flag", errUsage, flags.Arg(0))
	}
	return nil
}

func runTarget(ctx context.Context, args []string, in *os.File, out io.Writer) error {
	flags := flag.NewFlagSet("target", flag.ContinueOnError)
	addr := flags.String("addr", "127.0.0.1:0", "")
	memory := flags.Int("memory", 256<<20, "")
	if err := parse(flags, args); err != nil {
		return err
	}
	if *memory <= 0 {
		return fmt.Errorf("%w: --memory %d: want a number of bytes above zero", errUsage, *memory)
	}
	where, err := net.ResolveTCPAddr("tcp", *addr)
	if err != nil {
		return fmt.Errorf("%w: --addr: %w", errUsage, err)
	}
	mem, err := mapMemory(*memory)
	if err != nil {
		return err
	}
	listener, err := net.ListenTCP("tcp", where)
	if err != nil {
		return err
	}
	t := newTarget(mem)
	ready := struct {
		Addr   string `json:"addr"`
		Base   uint64 `json:"base"`
		Length int    `json:"length"`
	}{listener.Addr().String(), t.base, len(mem)}
	if err := json.NewEncoder(out).Encode(ready); err != nil {
		return err
	}

	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go cancelAtEnd(in, cancel)
	stop := context.AfterFunc(ctx, func() { listener.Close() })
	defer stop()
	if err := t.serve(listener); err != nil {
		return err
	}
	return json.NewEncoder(out).Encode(map[string]float64{"cpu_seconds": cpuSeconds()})
}

// cancelAtEnd ties a target to whoever holds the other end of its input. Only a pipe says anything about that: a shell
// gives a background process /dev/null.
func cancelAtEnd(in *os.File, cancel func()) {
	info, err := in.Stat()
	if err != nil || info.Mode()&os.ModeNamedPipe == 0 {
		return
	}
	if _, err := io.Copy(io.Discard, in); err == nil {
		cancel()
	}
}

func runInitiator(ctx context.Context, args []string, out io.Writer) error {
	flags := flag.NewFlagSet("init", flag.ContinueOnError)
	var l load
	flags.StringVar(&l.addr, "addr", "", "")
	flags.Uint64Var(&l.base, "base", 0, "")
	op := flags.String("op", "write", "")
	flags.IntVar(&l.block, "block", 64<<10, "")
	flags.IntVar(&l.batch, "batch", 16, "")
	flags.IntVar(&l.threads, "threads", 1, "")
	flags.DurationVar(&l.duration, "duration", time.Second, "")
	flags.BoolVar(&l.turns, "turns", false, "")
	asJSON := flags.Bool("json", false, "")
	if err := parse(flags, args); err != nil {
		return err
	}
	l.write = *op == "write"
	if err := l.check(*op); err != nil {
		return fmt.Errorf("%w: %w", errUsage, err)
	}
	local, err := mapMemory(l.window() * l.threads)
	if err != nil {
		return err
	}
	r, err := l.run(ctx, local)
	if err != nil {
		return err
	}
	if *asJSON {
		return json.NewEncoder(out).Encode(r)
	}
	_, err = fmt.Fprintf(out, "%s block=%d batch=%d threads=%d: %.2f GB/s, %.1f k requests/s, %.3f core-seconds/GB\n",
		r.Op, r.BlockBytes, r.Batch, r.Threads, r.BytesPerSecond/1e9, r.RequestsPerSecond/1e3,
		r.CPUSeconds/(float64(r.Bytes)/1e9))
	return err
}

// maxWindows is the most local memory that a run may ask for: a wrong flag must not take the machine down.
const maxWindows = 4 << 30

func (l load) check(op string) error {
	switch {
	case l.addr == "":
		return errors.New("--addr is missing: the data port of the target, HOST:PORT")
	case l.base == 0:
		return errors.New("--base is missing: the address of the target's buffer, as the target prints it")
	case op != "write" && op != "read":
		return fmt.Errorf("--op %q: want write or read", op)
	case l.batch < 1 || l.batch > maxBatch:
		return fmt.Errorf("--batch %d: want 1 to %d", l.batch, maxBatch)
	case l.threads < 1 || l.threads > 256:
		return fmt.Errorf("--threads %d: want 1 to 256", l.threads)
	case l.block < 1 || l.block > maxWindows/l.batch/l.threads:
		return fmt.Errorf("--block %d: want 1 byte to %d, so that block × batch × threads stays below 4 GiB",
			l.block, maxWindows/l.batch/l.threads)
	case l.duration <= 0 || l.duration > time.Hour:
		return fmt.Errorf("--duration %v: want more than zero and at most an hour", l.duration)
	}
	return nil
}
