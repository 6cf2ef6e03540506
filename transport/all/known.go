package all

import "github.com/moonpath-io/moonpath/transport"

// Known is a protocol of the seed system, whether this build has it or not.
type Known struct {
	Name    string
	Summary string
}

// planned lists the protocol names of published engines that this version does not serve. They are known,
// so that asking for one is answered with a reason and not with "unknown".
var planned = []Known{
	{"shm", "shared memory between processes of one host"},
	{"rdma", "RDMA verbs (InfiniBand, RoCE)"},
	{"rdma_twosided", "RDMA verbs with two-sided messages"},
	{"efa", "AWS Elastic Fabric Adapter"},
	{"cxi", "HPE Slingshot"},
	{"barex", "RDMA through the accl library"},
	{"ub", "Unified Bus"},
	{"ubshmem", "Unified Bus shared memory"},
	{"nvlink", "NVLink between hosts (fabric handles) or processes"},
	{"nvlink_intra", "NVLink within one host"},
	{"hip", "AMD GPU memory within one host"},
	{"musa", "Moore Threads GPU memory"},
	{"maca", "MetaX GPU memory"},
	{"sunrise_link", "Sunrise GPU memory"},
	{"nccl", "NCCL one-sided operations"},
	{"flagcx", "FlagCX collective library"},
	{"ascend", "Huawei Ascend NPU memory"},
	{"cxl", "CXL memory"},
	{"nvmeof", "NVMe over fabrics"},
}

// Protocols returns every protocol name that is known and its summary: the transports of this build first.
func Protocols() []Known {
	var all []Known
	for _, f := range Factories() {
		all = append(all, Known{f.Name, f.Summary})
	}
	return append(all, planned...)
}

// Availability says whether a protocol can be installed here, and if not, why.
func Availability(name string) transport.Availability {
	for _, f := range Factories() {
		if f.Name == name {
			return f.Probe()
		}
	}
	for _, k := range planned {
		if k.Name == name {
			return transport.Availability{State: transport.Absent, Code: "not-built", Reason: "this version of moonpath has no " + name + " transport yet",
				Next: "use tcp, which every engine speaks"}
		}
	}
	return transport.Availability{State: transport.Absent, Code: "unknown", Reason: "no transport has the name " + name, Next: "run moonpath info to see the names"}
}
