package obs

import (
	"fmt"
	"io"
	"log/slog"
)

// LevelTrace is the slog level of the reference's TRACE, below slog's own.
const LevelTrace = slog.LevelDebug - 4

// levels holds the reference's names of the levels.
var levels = []struct {
	name  string
	level slog.Level
}{
	{"TRACE", LevelTrace},
	{"INFO", slog.LevelInfo},
	{"WARNING", slog.LevelWarn},
	{"ERROR", slog.LevelError},
}

// BadLevel reports a log level that [ParseLevel] does not know.
type BadLevel struct{ Text string }

// Error quotes the text and lists the levels.
func (e *BadLevel) Error() string {
	return fmt.Sprintf("log level %q is unknown: want TRACE, INFO, WARNING or ERROR", e.Text)
}

// ParseLevel returns the slog level of the reference's TRACE, INFO, WARNING or ERROR, or a
// [*BadLevel].
func ParseLevel(text string) (slog.Level, error) {
	for _, l := range levels {
		if l.name == text {
			return l.level, nil
		}
	}
	return 0, &BadLevel{text}
}

// NewHandler returns a handler that writes records of at least that level to w as text lines,
// with the reference's names of the levels.
func NewHandler(w io.Writer, level string) (slog.Handler, error) {
	least, err := ParseLevel(level)
	if err != nil {
		return nil, err
	}
	return slog.NewTextHandler(w, &slog.HandlerOptions{Level: least, ReplaceAttr: nameLevel}), nil
}

func nameLevel(groups []string, a slog.Attr) slog.Attr {
	level, ok := a.Value.Any().(slog.Level)
	if len(groups) > 0 || a.Key != slog.LevelKey || !ok {
		return a
	}
	for _, l := range levels {
		if l.level == level {
			a.Value = slog.StringValue(l.name)
		}
	}
	return a
}
