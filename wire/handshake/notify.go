package handshake

import (
	"fmt"
	"strconv"

	"github.com/moonpath-io/moonpath/wire/jsoncpp"
)

// NotifyAccepted is the text by which a receiver accepts a notification.
const NotifyAccepted = "success"

// Notify is a notification. Text that was read is not necessarily UTF-8.
type Notify struct {
	Name string
	Msg  string
}

// AppendNotify appends a notification. Bytes that are not UTF-8 reach the peer
// as U+FFFD.
func AppendNotify(dst []byte, n Notify) []byte {
	dst = append(dst, `{"name":`...)
	dst = jsoncpp.AppendString(dst, n.Name)
	dst = append(dst, `,"notify_msg":`...)
	dst = jsoncpp.AppendString(dst, n.Msg)
	return append(dst, '}', '\n')
}

// AppendNotifyReply appends the answer to a notification. Published senders take
// it for a refusal if and only if accepted is false.
func AppendNotifyReply(dst []byte, accepted bool) []byte {
	if accepted {
		return AppendNotify(dst, Notify{Msg: NotifyAccepted})
	}
	return AppendNotify(dst, Notify{})
}

// ParseNotify reads a notification. Missing and null fields are empty, numbers
// and booleans become text, as with published receivers. Name and message may
// hold limit bytes each. The error is a *FieldError or wraps a
// *jsoncpp.SyntaxError.
func ParseNotify(body []byte, limit int) (Notify, error) {
	root, err := parse("notification", body)
	if err != nil {
		return Notify{}, err
	}
	return notifyOf(root, limit)
}

// ParseNotifyReply tells whether the receiver accepted a notification: it says
// so with any text, and null is the reply of one that serves none. limit and
// errors are those of ParseNotify.
func ParseNotifyReply(body []byte, limit int) (accepted bool, err error) {
	root, err := parse("notification reply", body)
	if err != nil || root.Kind() == jsoncpp.Null {
		return false, err
	}
	n, err := notifyOf(root, limit)
	return n.Msg != "", err
}

func parse(message string, body []byte) (jsoncpp.Value, error) {
	root, err := jsoncpp.Parse(body)
	if err != nil {
		return nil, fmt.Errorf("handshake: the %s is %w; check that the peer is a transfer engine", message, err)
	}
	return root, nil
}

func notifyOf(root jsoncpp.Value, limit int) (Notify, error) {
	if root.Kind() != jsoncpp.Object {
		return Notify{}, &FieldError{"message", "an object", root.Describe()}
	}
	var name, msg jsoncpp.Value
	for key, value := range root.Members() {
		switch string(key) {
		case "name":
			name = value
		case "notify_msg":
			msg = value
		}
	}
	var n Notify
	var err error
	if n.Name, err = asText("name", name, limit); err != nil {
		return Notify{}, err
	}
	if n.Msg, err = asText("notify_msg", msg, limit); err != nil {
		return Notify{}, err
	}
	return n, nil
}

func asText(field string, v jsoncpp.Value, limit int) (string, error) {
	var text string
	switch v.Kind() {
	case jsoncpp.Absent, jsoncpp.Null:
	case jsoncpp.String:
		text, _ = v.Text()
	case jsoncpp.Bool:
		text = string(v)
	case jsoncpp.Number:
		var ok bool
		if text, ok = numberText(v); !ok {
			return "", &FieldError{field, "a number within the range of a double", v.Describe()}
		}
	default:
		return "", &FieldError{field, "a string", v.Describe()}
	}
	if len(text) > limit {
		return "", &FieldError{field, "at most " + strconv.Itoa(limit) + " bytes", strconv.Itoa(len(text))}
	}
	return text, nil
}
