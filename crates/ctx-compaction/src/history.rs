//! What is to be compacted, as plain values.

use std::sync::Arc;

use ctx_core::{
    ContextView, Entry, EntryId, Message, NodeState, RawJson, Result, Role, TokenLedger, Tokens,
};

use crate::cited::without_strangers;
use crate::{Config, FileLists};

/// One message of the history, known without reading it.
#[derive(Clone, Debug)]
pub struct Item {
    /// Its entry.
    pub entry: Arc<Entry>,
    /// The form in which it goes out, where that is not as recorded.
    pub form: Option<Arc<Message>>,
    /// Who speaks.
    pub role: Role,
    /// Tokens of the form that goes out.
    pub tokens: Tokens,
    /// Items of one group are a tool call and its results. Groups have no order.
    pub group: u32,
    /// Whether it holds tool results.
    pub has_results: bool,
    /// Whether it is a message of the user and not only a carrier of tool results.
    pub is_user: bool,
    /// Whether it was pinned: it stays in this process's requests, and its text is kept by the
    /// summary for the next one.
    pub pinned: bool,
    /// Whether it stays in this process's requests wherever the cut is: it is pinned, the newest
    /// message of the user, or of the tool calls in progress, or of one group with such a message.
    pub stays: bool,
}

impl Item {
    /// Whether a turn begins here: a message of the user, a command of theirs, a message of an
    /// extension, or the summary of a branch, which the model sees as the user's.
    #[must_use]
    pub fn begins_turn(&self) -> bool {
        self.is_user
            || matches!(self.role, Role::BashExecution | Role::Custom | Role::BranchSummary)
    }

    /// The message as it goes out.
    ///
    /// # Errors
    ///
    /// What reading it may give.
    pub fn message(&self) -> Result<Arc<Message>> {
        match &self.form {
            Some(form) => Ok(form.clone()),
            None => self.entry.message(),
        }
    }

    /// Whether it is tool results and nothing else.
    #[must_use]
    pub fn is_results(&self) -> bool {
        self.role == Role::ToolResult || (self.has_results && !self.is_user)
    }
}

/// A message in full, with the entry it came from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Said {
    /// The entry.
    pub id: EntryId,
    /// The message as recorded, whatever layers made of it since.
    pub message: Arc<Message>,
    /// Whether it was pinned.
    pub pinned: bool,
}

/// The summary of an earlier compaction.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PreviousSummary {
    /// Its text.
    pub text: String,
    /// Its entry, which its lines without a citation cite. Absent where the text is that of several
    /// summaries, or stands in no transcript.
    pub entry: Option<EntryId>,
    /// Files it says were read and modified.
    pub files: FileLists,
    /// Its tokens.
    pub tokens: Tokens,
}

/// The messages of a request, system messages aside, and the budget.
#[derive(Clone, Debug)]
pub struct History {
    /// The messages, oldest first, without system messages, summaries of compactions, and what
    /// layers added to the request.
    pub items: Vec<Item>,
    /// What stands for the history before them. Several summaries become one text.
    pub previous: Option<PreviousSummary>,
    /// The budget.
    pub ledger: TokenLedger,
    /// Tokens of the whole request as it is: messages, system prompt, tool schemas, pending input;
    /// uncorrected.
    pub counted: Tokens,
}

impl History {
    /// The history of a view.
    ///
    /// # Errors
    ///
    /// What reading an earlier summary may give.
    pub fn of(view: &ContextView) -> Result<Self> {
        let mut items = Vec::with_capacity(view.len());
        let mut previous: Option<PreviousSummary> = None;
        let mut lists = Vec::new();
        for (at, node) in view.nodes().iter().enumerate().filter(|(_, node)| node.is_live()) {
            match node.role() {
                Role::System => {}
                // What a layer added is in no transcript: no summary can stand for it, and no cut
                // can be named by it.
                role if *role != Role::CompactionSummary && node.state() == NodeState::Inserted => {
                }
                Role::CompactionSummary => {
                    let summary = node.entry().message()?;
                    let mut text = summary.plain_text();
                    let details = summary.meta.details.as_ref();
                    if !details.is_some_and(is_receipt) {
                        let ids = view.nodes().iter().map(|node| node.entry().id());
                        text = without_strangers(text, ids);
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
                role => items.push(Item {
                    entry: node.entry().clone(),
                    form: match node.state() {
                        NodeState::Replaced => Some(node.message()?),
                        _ => None,
                    },
                    role: role.clone(),
                    tokens: node.tokens(),
                    group: node.group(),
                    has_results: !node.results().is_empty(),
                    is_user: node.is_user(),
                    pinned: node.is_pinned(),
                    stays: view.is_protected(at),
                }),
            }
        }
        if let Some(previous) = &mut previous {
            // The text has room for some of them, the details for all.
            previous.files = FileLists::in_summary(&previous.text);
            lists.into_iter().for_each(|list| previous.files.merge(list));
        }
        let ledger = view.ledger().clone();
        let counted = view.total() + ledger.fixed();
        Ok(Self { items, previous, ledger, counted })
    }

    /// Tokens of the whole request as it is, corrected by the ledger's calibration.
    #[must_use]
    pub fn used(&self) -> Tokens {
        self.ledger.corrected(self.counted)
    }

    /// Tokens of the whole request as receipts tell them: counted, or as the provider said last with
    /// a count of what came since, where the configuration wants that and it is known.
    #[must_use]
    pub(crate) fn tokens_before(&self, config: &Config) -> Tokens {
        let reported = if config.reported_tokens { self.reported() } else { None };
        // What the provider counted holds all that we count, and its own system prompt.
        reported.filter(|&reported| reported >= self.used()).unwrap_or_else(|| self.used())
    }

    /// The newest usage of a whole answer, and what came since.
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

    /// Reads messages. One that cannot be read is passed over: a file that was damaged meanwhile is
    /// no reason to keep all of it in the window.
    #[must_use]
    pub fn read(&self, range: std::ops::Range<usize>) -> Vec<Said> {
        self.readable(range).map(|(_, _, said)| said).collect()
    }

    /// The messages that can be read: each with its place, and its item.
    pub(crate) fn readable(
        &self,
        range: std::ops::Range<usize>,
    ) -> impl Iterator<Item = (usize, &Item, Said)> {
        let items = self.items.get(range.clone()).unwrap_or_default();
        range.zip(items).filter_map(|(at, item)| {
            let message = item.entry.message().ok()?;
            Some((at, item, Said { id: item.entry.id().clone(), message, pinned: item.pinned }))
        })
    }
}

/// Whether details say that the summary was audited here: what it cites stood in the session, if
/// before all that is left in the view.
fn is_receipt(details: &RawJson) -> bool {
    #[derive(serde::Deserialize)]
    struct Ours {
        #[serde(rename = "receipt")]
        _receipt: serde::de::IgnoredAny,
    }
    serde_json::from_str::<Ours>(details.as_str()).is_ok()
}
