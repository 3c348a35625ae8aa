package main

import (
	"bytes"
	"compress/gzip"
	"io"
	"strings"
	"testing"
)

func TestPack(t *testing.T) {
	const in = `
{"provider":"zhipuai","id":"glm","name":"Second","release_date":"2026-01-02","limit":{"context":1,"output":1}}
{"provider":"openai","id":"gpt","name":"G\tP  T","release_date":"2025-08","knowledge":"2024-09",
 "tool_call":true,"reasoning":false,"attachment":true,"limit":{"context":400,"output":100,"input":300},
 "modalities":{"input":["text","image"],"output":["text"]},
 "reasoning_options":[{"type":"toggle"},{"type":"effort","values":["low","high"]}],"cost":{"input":1.25}}
{"provider":"zai","id":"glm","name":"Third","release_date":"2026-01-02","limit":{"context":1,"output":1}}
`
	want := header +
		"openai\tgpt\tG P T\t2025-08-01\t400\t100\ttext,image\ttext\tyn-y-\tlow,high\t2024-09\n" +
		"zhipu\tglm\tSecond\t2026-01-02\t1\t1\t\t\t-----\t\t\n"

	models, err := read(strings.NewReader(in))
	if err != nil {
		t.Fatal(err)
	}
	packed, err := pack(models)
	if err != nil {
		t.Fatal(err)
	}
	z, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		t.Fatal(err)
	}
	got, err := io.ReadAll(z)
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	again, err := pack(models)
	if err != nil || !bytes.Equal(again, packed) {
		t.Errorf("the same models gave other bytes, or %v", err)
	}
}

func TestReadRefuses(t *testing.T) {
	if _, err := read(strings.NewReader(`{"provider":"openai"} nonsense`)); err == nil {
		t.Error("nonsense was read")
	}
}
