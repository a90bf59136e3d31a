//! An engine that folds old messages into a tree of summaries, and loses none of them.
//!
//! When a session has outgrown its room, the messages before its fresh tail are folded, oldest
//! first, into *leaves*: each stands for a few thousand tokens of messages. Where more than four
//! summaries of a level stand side by side, the four oldest are folded into one of the next. So the
//! size of what goes out grows with the logarithm of the session. Every summary cites its originals
//! (`[e:FIRST]..[e:LAST]`), which stay in the transcript, and the summaries it is made of.
//!
//! | file | what it does |
//! |---|---|
//! | config | what a user may set, and the sizes that follow from it |
//! | tree | summaries, what they stand for, and which of them stand among the rows |
//! | fold | which rows become leaves, which summaries become one |
//! | said | a message as a summary is made of it |
//! | excerpt | a summary without a model |
//! | prose | a summary by the host's model, and what is taken of its answer |
//! | write | the text of a summary, by either |
//! | store | the tree in the host's store |
//! | compact | the whole tree as one summary |
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
