//! An engine that folds old messages into a tree of summaries, and loses no message.
//!
//! When a session exceeds a share of its budget, the messages before its fresh tail are folded,
//! oldest first, into *leaves*: each covers a few thousand tokens of messages. If more than four
//! summaries of a level are adjacent, the four oldest become one of the next level. Therefore the
//! size of a request grows with the logarithm of the session. Every summary cites its originals
//! (`[e:FIRST]..[e:LAST]`), which stay in the transcript, and its child summaries.
//!
//! | file | contents |
//! |---|---|
//! | config | the configuration, and the sizes derived from it |
//! | tree | summaries, their entries, and their positions among the rows |
//! | fold | folds rows into leaves, and summaries into one |
//! | said | the content of a message, as the input of a summary |
//! | excerpt | summaries without a model |
//! | prose | summaries by the host's model, and the cleaning of its answers |
//! | write | the text of a summary, by either of these |
//! | store | the tree in the host's store |
//! | compact | compaction: the whole tree as one summary |
//! | engine | the engine |

mod compact;
mod config;
mod engine;
mod excerpt;
mod fold;
mod prose;
mod said;
mod store;
mod tree;
mod write;

pub use engine::Lossless;

ctx_engine_sdk::export_engine!(Lossless);
