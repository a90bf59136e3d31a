//! Fake provider, sample transcripts and a conformance suite, for tests.
