//! Layer 3: replaces old history by a verified summary, so that a session of any length goes on.
//!
//! A compaction is a pipeline of plain values: [`History`] is what there is, a plan says what goes
//! and what stays, a ladder of summarisers writes the text, the audit compares it with its source,
//! repair adds what is missing, and the [`Receipt`] says what was done. The last rungs of the ladder
//! need no model and cannot fail.

#![forbid(unsafe_code)]

mod anonymize;
mod answer;
mod audit;
mod call_room;
mod calls;
mod chunk;
mod cited;
mod compact;
mod config;
mod extract;
mod fact;
mod facts;
mod files;
mod gauge;
mod grounds;
mod hard_prune;
mod history;
mod job;
mod ladder;
mod layer;
mod material;
mod plan;
mod prompts;
mod receipt;
mod repair;
mod retry;
mod runs;
mod serialize;
mod spend;
mod strategy;
mod structured;
mod survival;
mod text;
mod trim;

pub use audit::{Audit, Invented, audit, missing};
pub use chunk::{
    BASE_CHUNK_RATIO, MIN_CHUNK_RATIO, OVERSIZED_SHARE, SUMMARIZATION_OVERHEAD_TOKENS,
    chunk_by_max_tokens, is_oversized_for_summary, split_by_token_share,
};
pub use compact::{Details, Order, compact};
pub use config::{
    ByWindow, ChunkRatio, Config, Emergency, KeepMessages, MemoryFlush, Strategy, Ungrounded,
};
pub use extract::{Extract, extract};
pub use fact::{Fact, FactKind};
pub use facts::facts;
pub use files::FileLists;
pub use grounds::Grounds;
pub use hard_prune::{HardPrune, HardPrunePlan, SAFETY_MARGIN, plan_hard_prune};
pub use history::{History, Item, PreviousSummary, Said};
pub use job::{Draft, Job, Log};
pub use ladder::{branch_ladder, branch_summary, ladder, summary_unavailable};
pub use layer::Compaction;
pub use plan::{Limits, Plan, Planned, Shortened, plan};
pub use prompts::MAX_FOCUS_CHARS;
pub use receipt::{AuditReport, Call, KindCount, Receipt, Rung};
pub use repair::{Repair, Repaired, repair};
pub use retry::{FIRST_WAIT, MAX_ATTEMPTS};
pub use serialize::{SerializeOptions, TOOL_RESULT_MAX_CHARS, oversized_note, serialize};
pub use structured::{Field, Line, Progress, StructuredSummary, TURN_CONTEXT_HEADING, TurnPrefix};

pub use survival::{Fate, Survival, survivals};

#[cfg(feature = "register")]
mod register;
