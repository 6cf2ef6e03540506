package config

import "fmt"

const (
	portMin = "port.min"
	portMax = "port.max"

	// Linux hands out ports of this range to outgoing connections, so that a listener in it
	// may find its port taken. The reference refuses bounds that lie in it.
	ephemeralMin, ephemeralMax = 32768, 60999

	wantPorts = "two ports in order, each from 1024 to 65535 and not from 32768 to 60999"
)

// PortRange returns the ports, both inclusive, that listeners choose from. Resolve has
// checked the pair: a bad one from the environment was replaced by the defaults as a whole.
func PortRange(v *Values) (lo, hi int) {
	return int(v.Int(portMin)), int(v.Int(portMax))
}

// settlePorts applies the rule for the pair (wire spec, section 3.1): if one bound is bad,
// both go back to their defaults. Bounds from elsewhere than the environment are errors.
func (v *Values) settlePorts() ([]Warning, error) {
	lo, hi := v.rows[portMin], v.rows[portMax]
	if lo == nil || hi == nil || portsValid(lo.value.number, hi.value.number) {
		return nil, nil
	}
	given := fmt.Sprintf("%d to %d", lo.value.number, hi.value.number)
	var warnings []Warning
	for _, r := range []*row{lo, hi} {
		switch r.source {
		case Environment:
			text := fmt.Sprintf("the port range %s is not %s: both bounds stay at their defaults", given, wantPorts)
			warnings = append(warnings, Warning{r.env, text})
		case File, Flag, Code:
			return nil, &BadValue{Key: r.setting.Key, Value: given, Want: wantPorts, Source: r.source}
		}
	}
	for _, r := range []*row{lo, hi} {
		parsed, err := r.setting.parse(r.setting.Default)
		if err != nil {
			panic("config: newValues accepted a bad default of " + r.setting.Key)
		}
		r.value, r.source, r.env = parsed, Default, ""
	}
	return warnings, nil
}

func portsValid(lo, hi int64) bool {
	return lo <= hi && portValid(lo) && portValid(hi)
}

func portValid(p int64) bool {
	return p >= 1024 && p <= 65535 && (p < ephemeralMin || p > ephemeralMax)
}
