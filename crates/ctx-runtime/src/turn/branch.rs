//! Moving to another entry of the session's tree.

use std::collections::HashSet;
use std::sync::Arc;

use ctx_core::{EntryId, Error, ErrorKind, Result, Tokens};
use ctx_layers::compaction::{Job, Said, branch_summary};
use ctx_session::Transcript;
use ctx_session::log::NewEntry;

use super::Turn;
use crate::session::blocking;

/// The most a summary of a branch measures. (pi.)
const MOST: Tokens = Tokens(2_048);

impl Turn<'_> {
    /// Goes on behind another entry. What only the branch that is left holds becomes a summary there.
    pub(super) async fn branch(&mut self, to: &str) -> Result<String> {
        let (home, path) = (self.inner().home.clone(), self.session.path.clone());
        let named = to.trim_matches(['[', ']']).trim_start_matches("e:").to_owned();
        let found = move || left_behind(&ctx_session::open(&home, &path)?, &named);
        let (target, said) = blocking(found).await?;
        let (now, from_id) = (self.now(), self.session.leaf().unwrap_or_default());
        let (left, resolved) = (said.len(), &self.session.setting()?.resolved);
        let job = Job {
            config: Arc::new(resolved.compaction.clone()),
            said: said.into(),
            sizes: Vec::new(),
            groups: Vec::new(),
            turn_start: None,
            previous: None,
            summary_budget: MOST.min(resolved.ledger().window().scale(0.1)),
            counter: resolved.counter,
            focus: None,
            instructions: Default::default(),
        };
        let entry = match left {
            0 => NewEntry::Leaf { target_id: Some(target.clone()) },
            _ => {
                let models = self.session.setting()?.summary_models.clone();
                let summary = branch_summary(&job, models.as_ref()).await;
                NewEntry::BranchSummary { from_id, summary, details: None, from_hook: None }
            }
        };
        self.session.log().branch(Some(target.clone()))?;
        self.session.log().append(&entry, now)?;
        self.session.commit().await?;
        self.session.view = None;
        Ok(format!("The session goes on behind e:{target}; {left} messages are left behind."))
    }

    /// Where the branches of the session end.
    pub(super) async fn branches(&mut self) -> Result<String> {
        let (home, path) = (self.inner().home.clone(), self.session.path.clone());
        let ends = blocking(move || {
            let transcript = ctx_session::open(&home, &path)?;
            let ends = transcript.tips().into_iter().map(|tip| {
                let id = transcript.entries()[tip].id();
                let said = transcript.line_to(Some(id))?.pop().map(|item| item.entry.message());
                let said = said.transpose()?.map(|message| message.plain_text());
                let said: String = said.unwrap_or_default().chars().take(60).collect();
                Ok(format!("e:{id}  {}", said.replace('\n', " ")))
            });
            ends.collect::<Result<Vec<_>>>()
        });
        Ok(format!("Branches end at\n{}\n/branch ENTRY goes on behind one", ends.await?.join("\n")))
    }
}

/// The entry that is named, and the messages that are not on the way to it.
fn left_behind(transcript: &Transcript, named: &str) -> Result<(EntryId, Vec<Said>)> {
    let target = transcript.find(named).ok_or_else(|| {
        Error::new(ErrorKind::NotFound, "no entry of the session, or several, have that id")
            .with("entry", named)
            .hint("/branch lists where its branches end; citations of summaries name entries too")
    })?;
    let stays = transcript.line_to(Some(&target))?;
    let stays: HashSet<_> = stays.iter().map(|item| item.entry.id()).collect();
    let mut left = Vec::new();
    for item in transcript.main_line()? {
        if !stays.contains(item.entry.id()) {
            let (id, message) = (item.entry.id().clone(), item.entry.message()?);
            left.push(Said { id, message, pinned: false });
        }
    }
    Ok((target, left))
}
