//! Layer 4: trims stale tool results, per request, in memory.
