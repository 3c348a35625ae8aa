// Package sdk proves that the official OpenAI SDK for Go works with the gateway
// as it is. It is a module of its own, so that the gateway does not depend on
// the SDK.
package sdk
