//! Moves to another entry of the session's tree.

use std::collections::HashSet;
use std::sync::Arc;

use ctx_core::{EntryId, Error, ErrorKind, Result, SummaryModels, Timestamp, Tokens};
use ctx_facts::CitedMessage;
use ctx_layers::compaction::{SummaryJob, branch_summary};
use ctx_session::{NewEntry, SessionLog, Transcript};

use super::Turn;
use crate::spec::Resolved;
use crate::sync::spawn_blocking;

/// Maximum size of a branch summary. (pi.)
const MOST: Tokens = Tokens(2_048);

impl Turn<'_> {
    /// Continues the session after another entry.
    pub(super) async fn branch(&mut self, to: &str) -> Result<String> {
        let (home, path) = (self.pool.home.clone(), self.session.path.clone());
        let named = to.to_owned();
        let found = move || BranchMove::to(&ctx_session::open(&home, &path)?, &named);
        let to = spawn_blocking(found).await?;
        let setup = self.session.setup()?;
        let (resolved, models) = (setup.resolved.clone(), setup.summary_models.clone());
        let entry = to.entry(&resolved, models.as_ref(), self.session.leaf()).await;
        let now = self.now();
        to.append(&mut self.session.log(), &entry, now)?;
        self.session.commit().await?;
        self.session.view = None;
        let BranchMove { target, left } = to;
        let left = left.len();
        Ok(format!(
            "The session continues after e:{target}; {left} messages remain on the other branch."
        ))
    }

    /// Lists the last entries of the session's branches.
    pub(super) async fn branches(&mut self) -> Result<String> {
        let (home, path) = (self.pool.home.clone(), self.session.path.clone());
        let ends = spawn_blocking(move || branch_ends(&ctx_session::open(&home, &path)?)).await?;
        let ends: Vec<String> = ends.iter().map(|(id, text)| format!("e:{id}  {text}")).collect();
        Ok(format!("Branches end at\n{}\n/branch ENTRY continues after one", ends.join("\n")))
    }
}

/// Returns the last entries of a session's branches, with the beginning of their texts.
///
/// # Errors
///
/// Those of reading the transcript.
pub fn branch_ends(transcript: &Transcript) -> Result<Vec<(EntryId, String)>> {
    let ends = transcript.tips().into_iter().map(|tip| {
        let id = &transcript.entries[tip].id;
        let text = transcript.messages_to(Some(id))?.pop().map(|item| item.entry.message());
        let text = text.transpose()?.map(|message| message.plain_text());
        let text: String = text.unwrap_or_default().chars().take(60).collect();
        Ok((id.clone(), text.replace('\n', " ")))
    });
    ends.collect()
}

/// Moves a session to another of its entries.
#[derive(Debug)]
pub struct BranchMove {
    /// The entry after which the session continues.
    pub target: EntryId,
    /// The messages of the abandoned branch that are not on the path to `target`.
    pub left: Vec<CitedMessage>,
}

impl BranchMove {
    /// Creates the move to the entry `named`: an id or a prefix of one, also as `e:ID` or `[e:ID]`.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::NotFound`] for an unknown or ambiguous entry, and those of reading the
    /// transcript.
    pub fn to(transcript: &Transcript, named: &str) -> Result<Self> {
        let id = named.trim_matches(['[', ']']).trim_start_matches("e:");
        let target = transcript.find(id).ok_or_else(|| {
            Error::new(ErrorKind::NotFound, "unknown or ambiguous entry id")
                .with("entry", id)
                .hint("omit the id to list the ends of the session's branches")
        })?;
        let stays = transcript.messages_to(Some(&target))?;
        let stays: HashSet<_> = stays.iter().map(|item| item.entry.id()).collect();
        let mut left = Vec::new();
        for item in transcript.main_line()? {
            if !stays.contains(item.entry.id()) {
                let (id, message) = (item.entry.id().clone(), item.entry.message()?);
                left.push(CitedMessage { id, message, pinned: false });
            }
        }
        Ok(Self { target, left })
    }

    /// Creates the entry of the move: a summary of the abandoned messages, if there are any.
    pub async fn entry(
        &self,
        resolved: &Resolved,
        models: Option<&SummaryModels>,
        leaf: Option<EntryId>,
    ) -> NewEntry {
        if self.left.is_empty() {
            return NewEntry::Leaf { target_id: Some(self.target.clone()) };
        }
        let job = SummaryJob {
            config: Arc::new(resolved.compaction.clone()),
            messages: self.left.clone().into(),
            sizes: Vec::new(),
            groups: Vec::new(),
            turn_start: None,
            previous: None,
            summary_budget: MOST.min(resolved.ledger().window().scale(0.1)),
            counter: resolved.counter,
            focus: None,
            instructions: Default::default(),
        };
        let summary = branch_summary(&job, models).await;
        let from_id = leaf.unwrap_or_default();
        NewEntry::BranchSummary { from_id, summary, details: None, from_hook: None }
    }

    /// Appends `entry` after the target. The caller commits.
    ///
    /// # Errors
    ///
    /// The errors of [`SessionLog::append`].
    pub fn append(
        &self,
        log: &mut SessionLog,
        entry: &NewEntry,
        now: Timestamp,
    ) -> Result<EntryId> {
        log.branch(Some(self.target.clone()))?;
        log.append(entry, now)
    }
}
