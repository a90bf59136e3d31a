//! Layer 3: replaces old history by a verified summary, so that a session can grow without limit.
//!
//! A compaction is a pipeline of plain values. [`History`] is the input, a plan decides what is
//! summarised and what is kept, a ladder of summarisers writes the text, the audit compares it with
//! its source, repair adds missing facts, and the [`Receipt`] records the result. The last rungs of
//! the ladder need no model and cannot fail.

#![forbid(unsafe_code)]

mod answer;
mod audit;
mod chunk;
mod compact;
mod config;
mod fnv1a;
mod hard_prune;
mod history;
mod job;
mod ladder;
mod plan;
mod prompts;
mod receipt;
mod repair;
mod source_index;

pub use audit::{
    Audit, FactStatus, FoundFact, TracedFact, UnsupportedClaim, audit, find_facts, find_passage,
    missing, trace_facts,
};
pub use chunk::{SUMMARIZATION_OVERHEAD_TOKENS, chunk_by_max_tokens, split_by_token_share};
pub use compact::{ClientSummary, CompactOptions, Compaction, Details, compact};
pub use config::{
    ByWindow, ChunkRatio, Config, Emergency, KeepMessages, MemoryFlush, Strategy, Ungrounded,
};
pub use hard_prune::{HardPrune, HardPrunePlan, SAFETY_MARGIN};
pub use history::{History, HistoryItem};
pub use job::{CallLog, SummaryDraft, SummaryJob};
pub use ladder::{branch_ladder, branch_summary, ladder};
pub use plan::{CompactionPlan, PlanLimits, PlanOutcome, TruncatedMessage, plan};
pub use prompts::{MAX_FOCUS_CHARS, SerializeOptions, serialize};
pub use receipt::{AuditReport, KindCount, Receipt, RoundReport, Rung, SummaryCall};
pub use repair::{RepairOptions, Repaired, repair};
pub use source_index::SourceIndex;

#[cfg(feature = "register")]
mod register;
