//! The history to compact, as plain values.

use std::sync::Arc;

use ctx_core::{
    ContextView, Entry, Message, NodeState, RawJson, Result, Role, TokenLedger, Tokens,
};

use crate::Config;
use ctx_facts::{CitedMessage, FileLists, PreviousSummary, without_unknown_citations};

/// One message of the history; its properties are known without reading it.
#[derive(Clone, Debug)]
pub struct HistoryItem {
    /// Its entry.
    pub entry: Arc<Entry>,
    /// The message as sent, if it differs from the recorded one.
    pub form: Option<Arc<Message>>,
    /// Its role.
    pub role: Role,
    /// Tokens of the message as sent.
    pub tokens: Tokens,
    /// Items of one group are a tool call and its results. Group numbers have no order.
    pub group: u32,
    /// Whether it holds tool results.
    pub has_results: bool,
    /// Whether the user wrote it; false for a user message that only carries tool results.
    pub is_user: bool,
    /// Whether it was pinned: it stays in this process's requests, and the summary keeps its text
    /// for the next process.
    pub pinned: bool,
    /// Whether it stays in this process's requests wherever the cut is: it is pinned, the newest
    /// user message, part of the tool calls in progress, or in a group with such a message.
    pub stays: bool,
}

impl HistoryItem {
    /// Whether a turn begins here: a user message or command, a message of an extension, or a
    /// branch summary, which the model sees as the user's.
    pub fn begins_turn(&self) -> bool {
        self.is_user
            || matches!(self.role, Role::BashExecution | Role::Custom | Role::BranchSummary)
    }

    /// Returns the message as sent.
    ///
    /// # Errors
    ///
    /// Those of reading the message.
    pub(crate) fn message(&self) -> Result<Arc<Message>> {
        match &self.form {
            Some(form) => Ok(form.clone()),
            None => self.entry.message(),
        }
    }

    /// Whether it consists of tool results only.
    pub(crate) fn is_results(&self) -> bool {
        self.role == Role::ToolResult || (self.has_results && !self.is_user)
    }
}

/// The messages of a request, without system messages, and the budget.
#[derive(Clone, Debug)]
pub struct History {
    /// The messages, oldest first, without system messages, compaction summaries, and messages that
    /// layers inserted.
    pub items: Vec<HistoryItem>,
    /// The summary of the history before them. Several summaries become one text.
    pub previous: Option<PreviousSummary>,
    /// The messages that the earlier summary covers, oldest first; empty if they are unknown.
    pub originals: Vec<Arc<Entry>>,
    /// The token ledger.
    pub ledger: TokenLedger,
    /// Tokens of the whole current request: messages, system prompt, tool schemas, pending input;
    /// uncorrected. Messages with pointers count as recorded.
    pub counted: Tokens,
    /// The tokens that pointers save.
    pub pointed: Tokens,
}

impl History {
    /// Builds the history of a view.
    ///
    /// # Errors
    ///
    /// Those of reading an earlier summary.
    pub fn of(view: &ContextView) -> Result<Self> {
        let mut items = Vec::with_capacity(view.len());
        let mut previous: Option<PreviousSummary> = None;
        let mut lists = Vec::new();
        let mut originals = Vec::new();
        let mut pointed = Tokens::ZERO;
        for (at, node) in view.nodes().iter().enumerate().filter(|(_, node)| node.is_live()) {
            match node.role() {
                Role::System => {}
                // An inserted message is in no transcript: no summary can replace it, and no cut
                // can name it.
                role if *role != Role::CompactionSummary && node.state() == NodeState::Inserted => {
                }
                Role::CompactionSummary => {
                    originals.extend(node.entry().originals());
                    let summary = node.entry().message()?;
                    let mut text = summary.plain_text();
                    let details = summary.meta.details.as_ref();
                    if !details.is_some_and(is_receipt) {
                        let ids = view.nodes().iter().map(|node| node.entry().id());
                        text = without_unknown_citations(text, ids);
                    }
                    lists.extend(details.map(FileLists::in_details));
                    let is_first = previous.is_none();
                    let all = previous.get_or_insert_default();
                    let is_recorded = node.state() != NodeState::Inserted;
                    all.entry = (is_first && is_recorded).then(|| node.entry().id().clone());
                    if !all.text.is_empty() {
                        all.text.push_str("\n\n");
                    }
                    all.text.push_str(&text);
                    all.tokens += node.tokens();
                }
                role => {
                    // It is restored when the summary replaces the message to which it points.
                    let restored = view.has_pointers(at);
                    let tokens = if restored { node.source_tokens } else { node.tokens() };
                    pointed += tokens - node.tokens();
                    items.push(HistoryItem {
                        entry: node.entry().clone(),
                        form: match node.state() {
                            NodeState::Replaced if !restored => Some(node.message()?),
                            _ => None,
                        },
                        role: role.clone(),
                        tokens,
                        group: node.group,
                        has_results: !node.results().is_empty(),
                        is_user: node.is_user(),
                        pinned: node.pinned,
                        stays: view.is_protected(at),
                    });
                }
            }
        }
        if let Some(previous) = &mut previous {
            // The text lists some of the files, the details all of them.
            previous.files = FileLists::in_summary(&previous.text);
            lists.into_iter().for_each(|list| previous.files.merge(list));
        }
        let ledger = view.ledger().clone();
        let counted = view.total() + ledger.fixed() + pointed;
        Ok(Self { items, previous, originals, ledger, counted, pointed })
    }

    /// Returns the tokens of the whole current request, corrected by the ledger's calibration.
    pub fn used(&self) -> Tokens {
        self.ledger.corrected(self.counted - self.pointed)
    }

    /// Returns the tokens of the whole request for receipts: counted or, if the configuration says
    /// so and it is known, the provider's last reported usage plus the counted tokens since.
    pub(crate) fn tokens_before(&self, config: &Config) -> Tokens {
        let reported = if config.reported_tokens { self.reported() } else { None };
        // The provider's count includes all that ctx counts, and its own system prompt.
        reported.filter(|&reported| reported >= self.used()).unwrap_or_else(|| self.used())
    }

    /// Returns the newest usage of a complete answer, plus the tokens since.
    fn reported(&self) -> Option<Tokens> {
        let mut since = Tokens::ZERO;
        for item in self.items.iter().rev() {
            if item.role == Role::Assistant {
                let meta = &item.entry.message().ok()?.meta;
                let failed = matches!(meta.stop_reason.as_deref(), Some("error" | "aborted"));
                let total = meta.usage.map_or(0, |usage| usage.total());
                if !failed && total > 0 {
                    return Some(Tokens::saturating_from(total) + since);
                }
            }
            since += item.tokens;
        }
        None
    }

    /// Reads messages. One that cannot be read is skipped: a damaged file must not keep all of it
    /// in the context window.
    pub fn read(&self, range: std::ops::Range<usize>) -> Vec<CitedMessage> {
        self.readable(range).map(|(_, _, message)| message).collect()
    }

    /// Returns the readable messages, each with its index and its item.
    pub(crate) fn readable(
        &self,
        range: std::ops::Range<usize>,
    ) -> impl Iterator<Item = (usize, &HistoryItem, CitedMessage)> {
        let items = self.items.get(range.clone()).unwrap_or_default();
        range.zip(items).filter_map(|(at, item)| {
            let message = item.entry.message().ok()?;
            Some((
                at,
                item,
                CitedMessage { id: item.entry.id().clone(), message, pinned: item.pinned },
            ))
        })
    }
}

/// Whether the details show that ctx audited the summary: its citations were valid even if the
/// cited entries have left the view.
fn is_receipt(details: &RawJson) -> bool {
    #[derive(serde::Deserialize)]
    struct Ours {
        #[serde(rename = "receipt")]
        _receipt: serde::de::IgnoredAny,
    }
    serde_json::from_str::<Ours>(details.as_str()).is_ok()
}
