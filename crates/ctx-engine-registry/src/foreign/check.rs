//! Checks whether an answer can be applied. Nothing is changed here.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use ctx_core::{ContextView, Entry, MIN_MESSAGE_TOKENS, Message, Tokens};
use ctx_engine_sdk::protocol::{Assembled, OutgoingMessage, Plan};

use super::{Rejection, ViewSync, message};

/// Used if an engine gives no reason.
const NO_REASON: &str = "planned by the engine";

/// An estimate causes a remark if it differs from the count by more than this factor and this
/// number of tokens.
const OFF: (f64, u64) = (1.5, 2_000);

/// The state before the call.
#[derive(Clone, Copy, Debug)]
pub struct CheckContext<'a> {
    /// The session, without the system prompt addition of an earlier turn.
    pub view: &'a ContextView,
    /// What was sent to the engine.
    pub sync: &'a ViewSync,
    /// Whether the engine runs after another engine. If that engine leaves the request over the
    /// budget, this one need not shrink it.
    pub adds_only: bool,
}

/// The remark that the token count of an engine, whose answer is applied anyway, differs from the
/// host's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EstimateOff {
    /// The engine's estimate of the messages.
    pub estimated: u64,
    /// The host's count.
    pub counted: Tokens,
}

impl std::fmt::Display for EstimateOff {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { estimated, counted } = self;
        write!(f, "its estimate is off: {estimated} tokens instead of {counted}")
    }
}

/// A message to insert.
#[derive(Debug)]
pub(super) struct Addition {
    /// The position to insert it before.
    pub(super) before: usize,
    pub(super) entry: Arc<Entry>,
    pub(super) pinned: bool,
}

/// An answer that can be applied to the view it was checked against.
#[derive(Debug)]
pub struct CheckedPlan {
    /// One position of each dropped group.
    pub(super) drops: Vec<usize>,
    pub(super) forms: Vec<(usize, Message)>,
    pub(super) pins: Vec<usize>,
    /// In the order of the request.
    pub(super) additions: Vec<Addition>,
    pub(super) reason: String,
    /// Text to append to the system prompt.
    pub system_prompt_addition: Option<String>,
    /// The tokens of the messages afterwards.
    pub tokens: Tokens,
    /// The remark on the engine's estimate.
    pub remark: Option<EstimateOff>,
}

/// Checks an answer against its view.
///
/// # Errors
///
/// The reason why it cannot be applied.
pub fn check(answer: Assembled, context: CheckContext<'_>) -> Result<CheckedPlan, Rejection> {
    let Assembled { plan, messages, system_prompt_addition, estimated_tokens } = answer;
    let reason = plan.reason.as_deref().map_or_else(|| NO_REASON.into(), super::rejection::tidy);
    let edits = match messages {
        None => Edits::of_plan(&plan, context)?,
        Some(_) if !plan.is_empty() => {
            let why = "it has both 'messages' and a plan".to_owned();
            return Err(Rejection::Malformed { why });
        }
        Some(messages) => Edits::of_messages(&messages, context)?,
    };
    let (drops, freed) = edits.groups(context)?;
    let view = context.view;
    if let Some(&at) = edits.forms.keys().find(|&&at| view.is_newest_user(at)) {
        let why = "the newest user message must be sent unchanged";
        return Err(Rejection::mismatch(view.node(at).entry().id(), why));
    }
    let grown: u64 = edits.forms.values().map(|form| view.ledger().count(form).get()).sum();
    let shrunk: u64 = edits.forms.keys().map(|&at| view.node(at).tokens().get()).sum();
    let mut added = 0;
    for addition in &edits.additions {
        let tokens = addition.entry.tokens(view.ledger().counter());
        added += tokens.map_or(u64::from(u32::MAX), Tokens::get);
    }
    let tokens = (view.total().get() + grown + added).saturating_sub(freed + shrunk);
    let checked = CheckedPlan {
        drops,
        forms: edits.forms.into_iter().collect(),
        pins: edits.pins,
        additions: edits.additions,
        reason,
        system_prompt_addition: system_prompt_addition.filter(|text| !text.is_empty()),
        tokens: Tokens::saturating_from(tokens),
        remark: estimated_tokens.and_then(|estimated| remark(estimated, tokens)),
    };
    check_budget(&checked, &edits.dropped, context)?;
    Ok(checked)
}

/// Protected rows may exceed the budget under any plan: `finish` then trims them. But nothing may
/// be inserted into a request that does not fit.
fn check_budget(
    checked: &CheckedPlan,
    dropped: &HashSet<usize>,
    context: CheckContext<'_>,
) -> Result<(), Rejection> {
    let view = context.view;
    let addition = checked.system_prompt_addition.as_deref();
    let addition = addition.map_or(Tokens::ZERO, |text| view.ledger().counter().text(text));
    let budget = view.ledger().budget() - addition;
    let estimated = checked.remark.as_ref().map(|remark| remark.estimated);
    let refused = Rejection::OverBudget { tokens: checked.tokens, budget, estimated };
    if addition > Tokens::ZERO && budget < MIN_MESSAGE_TOKENS {
        return Err(refused);
    }
    if checked.tokens <= budget {
        return Ok(());
    }
    let grew = addition > Tokens::ZERO || checked.tokens > view.total();
    let can_drop =
        |at: usize| view.node(at).is_live() && !dropped.contains(&at) && !view.is_protected(at);
    let can_shrink = !checked.additions.is_empty() || (0..view.len()).any(can_drop);
    if grew || (can_shrink && !context.adds_only) { Err(refused) } else { Ok(()) }
}

fn remark(estimated: u64, counted: u64) -> Option<EstimateOff> {
    let (least, most) = (estimated.min(counted), estimated.max(counted));
    let is_off = most - least > OFF.1 && most as f64 > least as f64 * OFF.0;
    let counted = Tokens::saturating_from(counted);
    is_off.then_some(EstimateOff { estimated, counted })
}

/// The edits of an answer, by position.
#[derive(Default)]
struct Edits {
    dropped: HashSet<usize>,
    forms: HashMap<usize, Message>,
    pins: Vec<usize>,
    additions: Vec<Addition>,
}

impl Edits {
    fn of_plan(plan: &Plan, context: CheckContext<'_>) -> Result<Self, Rejection> {
        let view = context.view;
        let row = |id: &str| context.sync.position(view, id).ok_or_else(|| Rejection::unknown(id));
        let mut edits = Self::default();
        for id in &plan.drop {
            let at = row(id)?;
            if view.is_protected(at) {
                return Err(Rejection::ProtectedDropped { id: super::rejection::tidy(id) });
            }
            if !edits.dropped.insert(at) {
                return Err(Rejection::twice(id));
            }
        }
        let mut named = edits.dropped.clone();
        if let Some(keep) = plan.keep_last {
            edits.keep_last(keep, view);
        }
        for replacement in &plan.replace {
            let at = row(&replacement.id)?;
            if !named.insert(at) {
                return Err(Rejection::twice(&replacement.id));
            }
            let form = message::replacement(view.node(at), replacement)?;
            // A replacement of a row that `keepLast` drops has no effect.
            if !edits.dropped.contains(&at) {
                edits.forms.insert(at, form);
            }
        }
        let mut new: HashMap<&str, bool> = HashMap::new();
        for insertion in &plan.insert {
            let taken = context.sync.position(view, &insertion.id);
            if taken.is_some_and(|at| !edits.dropped.contains(&at)) {
                return Err(Rejection::TakenId { id: super::rejection::tidy(&insertion.id) });
            }
            if new.insert(&insertion.id, false).is_some() {
                return Err(Rejection::twice(&insertion.id));
            }
            let before = insertion.before.as_deref().map(row).transpose()?;
            let message = message::insertion(insertion)?;
            edits.add(&insertion.id, message, before.unwrap_or(view.len()));
        }
        for id in &plan.pin {
            if let Some(pinned) = new.get_mut(id.as_str()) {
                *pinned = true;
                continue;
            }
            let at = row(id)?;
            if plan.drop.iter().any(|dropped| dropped == id) {
                return Err(Rejection::twice(id));
            }
            edits.pins.push(at);
        }
        for addition in &mut edits.additions {
            addition.pinned = new.get(&**addition.entry.id()).is_some_and(|pinned| *pinned);
        }
        edits.additions.sort_by_key(|addition| addition.before);
        Ok(edits)
    }

    /// The edits of a full list of messages.
    fn of_messages(
        messages: &[OutgoingMessage],
        context: CheckContext<'_>,
    ) -> Result<Self, Rejection> {
        let view = context.view;
        let mut edits = Self::default();
        let (mut next, mut new) = (0, Vec::new());
        let (mut named, mut names) = (HashSet::new(), HashSet::new());
        for OutgoingMessage { id, message } in messages {
            if !names.insert(id.as_str()) {
                return Err(Rejection::twice(id));
            }
            match (context.sync.position(view, id), message) {
                (Some(at), _) if at < next => {
                    return Err(Rejection::OutOfOrder { id: super::rejection::tidy(id) });
                }
                (Some(at), message) => {
                    for (id, message) in new.drain(..) {
                        edits.add(id, message, at);
                    }
                    next = at + 1;
                    named.insert(at);
                    if let Some(message) = message {
                        // The engine may return unchanged messages: only those that differ are
                        // edits.
                        if let Some(form) = message::change(view.node(at), id, message)? {
                            edits.forms.insert(at, form);
                        }
                    }
                }
                (None, Some(message)) => {
                    new.push((id.as_str(), message::addable(id, message::read(message)?)?));
                }
                (None, None) => return Err(Rejection::unknown(id)),
            }
        }
        for (id, message) in new {
            edits.add(id, message, view.len());
        }
        for (at, node) in view.nodes().iter().enumerate() {
            if node.is_live() && !named.contains(&at) {
                if view.is_protected(at) {
                    let id = super::rejection::tidy(node.entry().id());
                    return Err(Rejection::ProtectedDropped { id });
                }
                edits.dropped.insert(at);
            }
        }
        Ok(edits)
    }

    fn add(&mut self, id: &str, message: Message, before: usize) {
        let entry = Arc::new(Entry::in_memory(id, message));
        self.additions.push(Addition { before, entry, pinned: false });
    }

    /// Drops the rows before the last `rows`, except protected rows and partly kept groups.
    fn keep_last(&mut self, rows: usize, view: &ContextView) {
        let mut kept = HashSet::new();
        let live = (0..view.len()).rev().filter(|&at| view.node(at).is_live());
        let mut older = Vec::new();
        for (nth, at) in live.enumerate() {
            if nth < rows {
                kept.insert(view.node(at).group);
            } else {
                older.push(at);
            }
        }
        let goes = |&at: &usize| !view.is_protected(at) && !kept.contains(&view.node(at).group);
        self.dropped.extend(older.into_iter().filter(goes));
    }

    /// Returns one position of each dropped group, and the number of tokens this frees.
    fn groups(&self, context: CheckContext<'_>) -> Result<(Vec<usize>, u64), Rejection> {
        let view = context.view;
        let mut positions: Vec<usize> = self.dropped.iter().copied().collect();
        positions.sort_unstable();
        let (mut seen, mut drops, mut freed) = (HashSet::new(), Vec::new(), 0);
        for at in positions {
            freed += view.node(at).tokens().get();
            if !seen.insert(view.node(at).group) {
                continue;
            }
            drops.push(at);
            let is_left = |&at: &usize| view.node(at).is_live() && !self.dropped.contains(&at);
            if let Some(left) = view.group_at(at).into_iter().find(is_left) {
                let id = super::rejection::tidy(view.node(left).entry().id());
                return Err(Rejection::GroupSplit { id });
            }
        }
        Ok((drops, freed))
    }
}
