package diff

import "testing"

func TestUnified(t *testing.T) {
	for name, c := range map[string]struct{ before, after, want string }{
		"nothing":   {"a\nb\n", "a\nb\n", "--- x\n+++ y\n"},
		"of a line": {"a\nb\nc\n", "a\nB\nc\n", "--- x\n+++ y\n@@ -1,3 +1,3 @@\n a\n-b\n+B\n c\n"},
		"from none": {"", "a\n", "--- x\n+++ y\n@@ -0,0 +1,1 @@\n+a\n"},
		"two hunks": {
			"1\n2\n3\n4\n5\n6\n7\n8\n9\n", "0\n1\n2\n3\n4\n5\n6\n7\n8\n",
			"--- x\n+++ y\n@@ -1,3 +1,4 @@\n+0\n 1\n 2\n 3\n@@ -6,4 +7,3 @@\n 6\n 7\n 8\n-9\n",
		},
	} {
		if got := Unified("x", "y", c.before, c.after, nil); got != c.want {
			t.Errorf("%s: got\n%swant\n%s", name, got, c.want)
		}
	}
}
