//! Layer 2: bounds a tool result when it is written.
