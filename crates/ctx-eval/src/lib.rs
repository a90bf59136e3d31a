//! Replay and evaluation of engines over recorded transcripts.
