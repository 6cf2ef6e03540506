package config

import "fmt"

const (
	portMin = "port.min"
	portMax = "port.max"

	// Linux gives ports of this range to outgoing connections, so a listener could find its
	// port taken. The reference refuses bounds that lie in it.
	ephemeralMin, ephemeralMax = 32768, 60999

	wantPorts = "two ports in order, each from 1024 to 65535 and not from 32768 to 60999"
)

// PortRange returns the ports, both inclusive, that listeners choose from. Resolve has
// checked the pair: a bad one from the environment was replaced by the defaults as a whole.
func PortRange(v *Values) (lo, hi int) {
	return int(v.Int(portMin)), int(v.Int(portMax))
}

// settleEnvPorts applies the reference's rule to what the environment says: if one bound is
// bad, both stay at their defaults (wire spec, section 3.1).
func (v *Values) settleEnvPorts() (warnings []Warning) {
	lo, hi := v.rows[portMin], v.rows[portMax]
	if portsValid(lo, hi) {
		return nil
	}
	text := fmt.Sprintf("%s is not %s: both stay at their defaults", formatPorts(lo, hi), wantPorts)
	for _, r := range []*row{lo, hi} {
		if r.source == Environment {
			warnings = append(warnings, Warning{r.env, text})
		}
		*r = defaultRow(r.setting)
	}
	return warnings
}

// checkPorts finds a pair that a file, a flag or code spoiled.
func (v *Values) checkPorts() error {
	lo, hi := v.rows[portMin], v.rows[portMax]
	if portsValid(lo, hi) {
		return nil
	}
	strongest := lo
	if hi.source > lo.source {
		strongest = hi
	}
	return &BadValue{strongest.setting.Key, formatPorts(lo, hi), wantPorts, strongest.source}
}

// portsValid holds for a table without the pair, too.
func portsValid(lo, hi *row) bool {
	return lo == nil || hi == nil ||
		lo.value.number <= hi.value.number && portValid(lo.value.number) && portValid(hi.value.number)
}

func portValid(p int64) bool {
	return p >= 1024 && p <= 65535 && (p < ephemeralMin || p > ephemeralMax)
}

func formatPorts(lo, hi *row) string {
	return fmt.Sprintf("%d to %d", lo.value.number, hi.value.number)
}
