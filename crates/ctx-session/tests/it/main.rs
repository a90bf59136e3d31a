//! Transcripts: read, written, damaged, and written by many.

mod compactions;
mod damage;
mod formats;
mod hostile;
mod killed;
mod mutations;
mod opencode;
mod recorded;
mod writers;
