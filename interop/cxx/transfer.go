package cxx

// Op is the direction of a transfer, seen from the peer that makes it.
type Op string

// The two directions: Read pulls from the target, Write pushes to it.
const (
	Read  Op = "read"
	Write Op = "write"
)

// Notify is a message between engines.
type Notify struct {
	Name, Text string
}

// Batch is a list of transfers with one target. Locals, Remotes and Lengths run parallel.
type Batch struct {
	Op      Op
	Target  string // segment name
	Locals  []uint64
	Remotes []uint64
	Lengths []uint64
	Notify  *Notify // sent to the target when the whole batch has succeeded; nil for none
}

func (b Batch) args() map[string]any {
	args := b.argsWithoutNotify()
	args["notify"] = notifyArg(b.Notify)
	return args
}

func (b Batch) argsWithoutNotify() map[string]any {
	return map[string]any{
		"op": b.Op, "target": b.Target,
		// An empty list has to be a list, and a nil slice would be null.
		"local_addrs":  append([]uint64{}, b.Locals...),
		"remote_addrs": append([]uint64{}, b.Remotes...),
		"lengths":      append([]uint64{}, b.Lengths...),
	}
}

func notifyArg(n *Notify) []string {
	if n == nil {
		return nil
	}
	return []string{n.Name, n.Text}
}

// Transfer moves length bytes between local, an address in the peer, and remote, one in the target, and waits for the end.
// A failed transfer is a *CallFailed.
func (p *Peer) Transfer(op Op, target string, local, remote, length uint64) error {
	return p.TransferNotify(op, target, local, remote, length, nil)
}

// TransferNotify is Transfer with a message for the target, sent after success.
func (p *Peer) TransferNotify(op Op, target string, local, remote, length uint64, notify *Notify) error {
	return p.coded("transfer", map[string]any{
		"op": op, "target": target, "local": local, "remote": remote, "length": length, "notify": notifyArg(notify),
	})
}

// BatchTransfer submits the batch and waits for its end. One failed member makes the whole batch a *CallFailed.
func (p *Peer) BatchTransfer(b Batch) error {
	return p.coded("batch", b.args())
}

// SubmitBatch submits the batch, whose Notify is not used, and returns its id for WaitBatches.
func (p *Peer) SubmitBatch(b Batch) (id uint64, err error) {
	if err := p.process.call("submit_batch", b.argsWithoutNotify(), &id); err != nil {
		return 0, err
	}
	if id == 0 {
		return 0, &CallFailed{Call: "submit_batch", Code: 0}
	}
	return id, nil
}

// WaitBatches waits for submitted batches; one failed transfer in any of them is a *CallFailed. An id can be waited for once.
func (p *Peer) WaitBatches(ids ...uint64) error {
	return p.coded("wait_batches", map[string]any{"ids": append([]uint64{}, ids...)})
}

// Parallel runs every batch in a thread of its own inside the peer, rounds times over, all starting together. The first
// failure is the result.
func (p *Peer) Parallel(rounds int, batches ...Batch) error {
	args := make([]any, len(batches))
	for i, b := range batches {
		args[i] = b.args()
	}
	var codes []int
	if err := p.process.call("parallel", map[string]any{"batches": args, "rounds": rounds}, &codes); err != nil {
		return err
	}
	for _, code := range codes {
		if code != 0 {
			return &CallFailed{Call: "parallel", Code: code}
		}
	}
	return nil
}

// Notifies returns the messages that the peer has received since the last call, in the order of their arrival.
func (p *Peer) Notifies() ([]Notify, error) {
	var pairs [][2]string
	if err := p.process.call("notifies", []any{}, &pairs); err != nil {
		return nil, err
	}
	notifies := make([]Notify, len(pairs))
	for i, pair := range pairs {
		notifies[i] = Notify{Name: pair[0], Text: pair[1]}
	}
	return notifies, nil
}

// Probe asks whether the engine of that segment is alive.
func (p *Peer) Probe(segment string) error {
	return p.coded("probe", []any{segment})
}

// FirstBuffer opens the segment and returns the address of its first buffer. No buffer and no such segment are both a
// *CallFailed with code 0, because the engine does not tell them apart.
func (p *Peer) FirstBuffer(segment string) (addr uint64, err error) {
	if err := p.process.call("first_buffer", []any{segment}, &addr); err != nil {
		return 0, err
	}
	if addr == 0 {
		return 0, &CallFailed{Call: "first_buffer", Code: 0}
	}
	return addr, nil
}
