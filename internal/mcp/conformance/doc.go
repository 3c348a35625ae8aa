// Package conformance proves that package mcp, and the tools that are run with
// it, work with servers of the official SDK for Go in every way that those can
// be set up. It is a module of its own, so that the gateway does not depend on
// the SDK.
package conformance
