//! HTTP proxy, MCP, inspector page, metrics.
