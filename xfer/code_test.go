package xfer

import (
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"slices"
	"strings"
	"testing"
)

// wantCodes repeats every number as a literal: callers compare them with what the C++ engine returned (wire spec,
// section 5.6).
var wantCodes = []struct {
	code   Code
	number int
	int    int
	name   string
}{
	{OK, 0, 0, "OK"},
	{InvalidArgument, 1, -1, "InvalidArgument"},
	{TooManyRequests, 2, -2, "TooManyRequests"},
	{AddressNotRegistered, 3, -3, "AddressNotRegistered"},
	{BatchBusy, 4, -4, "BatchBusy"},
	{DeviceNotFound, 6, -6, "DeviceNotFound"},
	{AddressOverlapped, 7, -7, "AddressOverlapped"},
	{NotSupportedTransport, 8, -8, "NotSupportedTransport"},
	{DNS, 101, -101, "DNS"},
	{Socket, 102, -102, "Socket"},
	{MalformedJSON, 103, -103, "MalformedJSON"},
	{RejectHandshake, 104, -104, "RejectHandshake"},
	{Metadata, 200, -200, "Metadata"},
	{Endpoint, 201, -201, "Endpoint"},
	{Context, 202, -202, "Context"},
	{Numa, 300, -300, "Numa"},
	{Clock, 301, -301, "Clock"},
	{Memory, 302, -302, "Memory"},
	{NotImplemented, 999, -303, "NotImplemented"},
	{Closed, 1001, -1001, "Closed"},
	{Interrupted, 1002, -1002, "Interrupted"},
	{Deadline, 1003, -1003, "Deadline"},
	{Refused, 1004, -1004, "Refused"},
	{WrongPeer, 1005, -1005, "WrongPeer"},
	{BadProtocol, 1006, -1006, "BadProtocol"},
}

func TestR_OBS_2_EveryCodeCarriesMeaningAndNextStep(t *testing.T) {
	var codes []Code
	names, texts := map[string]bool{}, map[string]bool{}
	for _, want := range wantCodes {
		c := want.code
		codes = append(codes, c)
		if int(c) != want.number || c.Int() != want.int || c.Name() != want.name {
			t.Errorf("code %d, Int %d, name %s; want %d, %d, %s", int(c), c.Int(), c.Name(), want.number, want.int, want.name)
		}
		if c.Error() == "" || texts[c.Error()] || names[c.Name()] {
			t.Errorf("%s: name or text %q is empty or another code's", c.Name(), c.Error())
		}
		names[c.Name()], texts[c.Error()] = true, true
		if c.Next() == "" || c.Next() == Code(-1).Next() {
			t.Errorf("%s: next step is %q", c.Name(), c.Next())
		}
		if known := slices.Contains(Sides(), c.Side()); known != (c != OK) {
			t.Errorf("%s: the side that has to change something is %q", c.Name(), c.Side())
		}
		for _, part := range []string{c.Error(), c.Next()} {
			if strings.ContainsAny(part, "|\n") || strings.TrimSpace(part) != part || strings.HasSuffix(part, ".") {
				t.Errorf("%s: %q does not fit into a line or a table", c.Name(), part)
			}
		}
	}
	if !slices.Equal(codes, Codes()) {
		t.Errorf("Codes is %d, want %d", Codes(), codes)
	}
	if !slices.IsSorted(Codes()) {
		t.Error("Codes is not in ascending order")
	}
}

// A constant without a row would be an "unknown code" in front of a user, so the source is asked which there are.
func TestEveryConstantHasARow(t *testing.T) {
	file, err := parser.ParseFile(token.NewFileSet(), "code.go", nil, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	var constants, rows []string
	ast.Inspect(file, func(n ast.Node) bool {
		spec, ok := n.(*ast.ValueSpec)
		if !ok {
			return true
		}
		if of, ok := spec.Type.(*ast.Ident); ok && of.Name == "Code" {
			for _, name := range spec.Names {
				constants = append(constants, name.Name)
			}
		}
		return true
	})
	for _, c := range Codes() {
		rows = append(rows, c.Name())
	}
	if !slices.Equal(constants, rows) {
		t.Errorf("constants and rows differ:\n%s\n%s", constants, rows)
	}
}

func TestUnknownCodeIsNamedAsSuch(t *testing.T) {
	for _, c := range []Code{-1, 5, 9, 303, 1000, 1 << 40} {
		if c.Name() != "Unknown" || c.Error() != "unknown code" || c.Next() != "report the number" || c.Side() != "" || c.Int() != -int(c) {
			t.Errorf("code %d: %s, %q, %q, %d", int(c), c.Name(), c.Error(), c.Next(), c.Int())
		}
	}
}

func TestCodeOf(t *testing.T) {
	for _, tc := range []struct {
		name string
		err  error
		want Code
	}{
		{"nil", nil, OK},
		{"bare", BatchBusy, BatchBusy},
		{"wrapped", fmt.Errorf("free: %w", BatchBusy), BatchBusy},
		{"fault", &Fault{Code: Refused}, Refused},
		{"wrapped fault", fmt.Errorf("submit: %w", &Fault{Code: Refused}), Refused},
		{"a fault's code goes before its cause's", &Fault{Code: Metadata, Cause: &Fault{Code: Socket}}, Metadata},
		{"joined", errors.Join(errors.New("x"), DNS), DNS},
		{"no code", errors.New("x"), Context},
	} {
		if got := CodeOf(tc.err); got != tc.want {
			t.Errorf("%s: %s, want %s", tc.name, got.Name(), tc.want.Name())
		}
	}
}
