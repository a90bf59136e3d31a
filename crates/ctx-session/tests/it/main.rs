//! Transcripts: reading, writing, damage, and concurrent writers.

mod compactions;
mod damage;
mod formats;
mod hostile;
mod killed;
mod mutations;
mod opencode;
mod recorded;
mod writers;
