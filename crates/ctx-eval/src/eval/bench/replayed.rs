//! What the requests of a replayed session keep of what the agent needs next.

use std::collections::{HashMap, HashSet};

use ctx_core::{CallId, ContextView, EntryId, NodeState, Result};
use ctx_search::block::is_recalled;
use ctx_session::BranchMessage;

use super::handles::HandleIds;
use super::needed::{Needed, needed};
use super::session::{Item, cuts, tail};
use crate::eval::EvalSetup;
use crate::eval::report::KeptNext;
use crate::eval::text::{add_message, of_request};
use crate::recall::subjects;

/// A block answers a repeated call if it has this share of the lines of the result.
const ANSWERED: f64 = 0.9;

/// The labels of a session, each by the answer to a request.
#[derive(Debug)]
pub(in crate::eval) struct ReplayLabels {
    handles: HandleIds,
    needed: HashMap<EntryId, Vec<Needed>>,
    /// The results of calls that read or ran something again, with the same result.
    repeated: HashMap<EntryId, Vec<String>>,
}

impl ReplayLabels {
    /// Reads the labels of a session. The kept tail has a quarter of the window.
    pub(in crate::eval) fn of(line: &[BranchMessage], setup: &EvalSetup) -> Result<Self> {
        let mut handles = HandleIds::default();
        let items =
            line.iter().map(|it| Item::of(&it.entry, it.request, &setup.counter, &mut handles));
        let items = items.collect::<Result<Vec<_>>>()?;
        let at_cut = |at: usize| {
            let (before, after) = items.split_at(at);
            let (old, kept) = before.split_at(tail(before, setup.window).start);
            (items[at].entry.id().clone(), needed(old, kept, after))
        };
        let needed = cuts(&items, usize::MAX).into_iter().map(at_cut).collect();
        Ok(Self { handles, needed, repeated: repeated(line)? })
    }

    /// Adds what a request keeps for its answer and the messages after it.
    pub(in crate::eval) fn judge(
        &self,
        answer: &EntryId,
        view: &ContextView,
        kept: &mut KeptNext,
    ) -> Result<()> {
        if self.needed.contains_key(answer) {
            self.judge_text(answer, &of_request(view)?, kept);
        }
        if let Some(results) = self.repeated.get(answer) {
            let blocks = blocks(view)?;
            results.iter().for_each(|result| kept.repeated.add(holds(&blocks, result)));
        }
        Ok(())
    }

    /// Adds the needed handles that the text of a request has.
    pub(in crate::eval) fn judge_text(&self, answer: &EntryId, text: &str, kept: &mut KeptNext) {
        for one in self.needed.get(answer).into_iter().flatten() {
            let Some(handle) = self.handles.get(one.handle) else { continue };
            let is_in = handle.is_in(text);
            kept.loose.add(is_in);
            if one.strict {
                kept.strict.add(is_in);
            }
        }
    }
}

/// Returns the results of the calls that repeat an earlier call and have the same result.
fn repeated(line: &[BranchMessage]) -> Result<HashMap<EntryId, Vec<String>>> {
    let mut results: HashMap<CallId, String> = HashMap::new();
    for item in line {
        let message = item.entry.message()?;
        for result in message.tool_results() {
            results.insert(result.call_id.clone(), result.plain_text().into_owned());
        }
    }
    let (mut known, mut repeated) = (HashSet::new(), HashMap::<_, Vec<String>>::new());
    for item in line {
        for call in item.entry.message()?.tool_calls() {
            let Some(result) = results.get(&call.id).filter(|text| !text.trim().is_empty()) else {
                continue;
            };
            for subject in subjects(call) {
                if !known.insert((subject, result)) {
                    repeated.entry(item.entry.id().clone()).or_default().push(result.clone());
                }
            }
        }
    }
    Ok(repeated)
}

/// Returns the text of the recalled blocks in a view.
fn blocks(view: &ContextView) -> Result<String> {
    let mut text = String::new();
    for node in view.nodes().iter().filter(|node| node.state() == NodeState::Inserted) {
        let message = node.message()?;
        if node.is_live() && is_recalled(&message.plain_text()) {
            add_message(&message, &mut text);
        }
    }
    Ok(text)
}

fn holds(blocks: &str, result: &str) -> bool {
    let lines: Vec<&str> = result.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    let held = lines.iter().filter(|line| blocks.contains(**line)).count();
    held as f64 >= ANSWERED * lines.len() as f64
}
