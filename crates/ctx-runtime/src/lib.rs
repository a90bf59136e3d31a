//! The outer loop: lanes, overflow recovery, failover, flush, session lifecycle.
