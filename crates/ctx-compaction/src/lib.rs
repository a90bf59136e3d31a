//! Layer 3: replaces old history by a summary, or prunes it.
