//! What a context engine author depends on: the wire protocol and the C ABI.
