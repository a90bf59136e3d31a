//! The engine.

use std::collections::HashMap;

use ctx_engine_sdk::protocol::{SubagentReason, verb};
use ctx_engine_sdk::{
    Assembled, Bootstrap, Bootstrapped, Compact, CompactResult, Engine, Hello, Host, Info, Plan,
    Result, Session, SubagentEnded, SubagentSpawn, TurnStatus,
};

use crate::compact::compact;
use crate::config::{Config, Sizes};
use crate::fold::{Fold, Rest};
use crate::said::clip;
use crate::store;
use crate::tree::{Parked, Tree};
use crate::write::Writer;

/// Maximum number of bytes of the parent's summaries that a subagent gets.
const INHERITED: usize = 6_000;

const VERBS: [&str; 5] = [
    verb::BOOTSTRAP,
    verb::COMMIT_TURN,
    verb::PREPARE_SUBAGENT_SPAWN,
    verb::ROLLBACK_SUBAGENT_SPAWN,
    verb::ON_SUBAGENT_ENDED,
];

/// The engine.
#[derive(Debug)]
pub struct Lossless {
    config: Config,
    trees: HashMap<String, Tree>,
}

impl Lossless {
    fn tree(&mut self, session: &str, host: &mut Host<'_>) -> Result<&mut Tree> {
        if !self.trees.contains_key(session) {
            let tree = store::load(session, host)?;
            self.trees.insert(session.to_owned(), tree);
        }
        Ok(self.trees.entry(session.to_owned()).or_default())
    }
}

impl Engine for Lossless {
    fn hello(hello: &Hello, _: &mut Host<'_>) -> Result<(Self, Info)> {
        let config = Config::read(&hello.config)?;
        let info = Info::new("lossless", env!("CARGO_PKG_VERSION")).owns_compaction().verbs(&VERBS);
        Ok((Self { config, trees: HashMap::new() }, info))
    }

    fn bootstrap(&mut self, request: &Bootstrap, host: &mut Host<'_>) -> Result<Bootstrapped> {
        // The summaries of earlier folds; the other messages come as rows.
        self.trees.remove(&request.session_id);
        let tree = self.tree(&request.session_id, host)?;
        Ok(Bootstrapped { bootstrapped: true, imported_messages: tree.messages(), reason: None })
    }

    fn assemble(&mut self, session: &Session, host: &mut Host<'_>) -> Result<Assembled> {
        let config = self.config;
        let tree = self.tree(session.id(), host)?;
        let sizes = config.sizes(session.budget().messages);
        let known = (tree.top.clone(), tree.parked.clone());
        let mut fold = Fold::of(tree, session.rows());
        let mut writer = Writer::new(session.id(), host, config.model_calls, None);
        let result = fold_excess(tree, &mut fold, &config, &sizes, &mut writer);
        // Summaries made before a cancel are kept too.
        tree.top = fold.top();
        if let Ok(Capacity::None) = result {
            let first = session.rows().iter().find(|row| row.keep && row.role != "system");
            let before = first.map(|row| row.id.clone()).unwrap_or_default();
            tree.parked = Some(Parked { before, top: tree.top.clone() });
        }
        if (&tree.top, &tree.parked) != (&known.0, &known.1) {
            store::save_head(session.id(), tree, host)?;
        }
        if result? == Capacity::None {
            return Ok(protected_only(session));
        }
        let inherited = usize::try_from(sizes.room / 8 * 3).unwrap_or(usize::MAX);
        Ok(Assembled {
            plan: fold.plan(tree),
            estimated_tokens: Some(fold.tokens(tree)),
            system_prompt_addition: tree.origin.as_deref().map(|origin| clip(origin, inherited)),
            ..Assembled::default()
        })
    }

    fn compact(
        &mut self,
        session: &Session,
        request: &Compact,
        host: &mut Host<'_>,
    ) -> Result<CompactResult> {
        let config = self.config;
        let tree = self.tree(session.id(), host)?;
        let wish = request.custom_instructions.as_deref();
        let mut writer = Writer::new(session.id(), host, config.model_calls, wish);
        let result = compact(tree, session, request, &config, &mut writer)?;
        if result.compacted {
            store::save_head(session.id(), tree, host)?;
        }
        Ok(result)
    }

    fn commit_turn(
        &mut self,
        session: &Session,
        advancement_key: &str,
        host: &mut Host<'_>,
    ) -> Result<TurnStatus> {
        let tree = self.tree(session.id(), host)?;
        if !tree.commit(advancement_key) {
            return Ok(TurnStatus::Duplicate);
        }
        let saved = store::save_head(session.id(), tree, host);
        if saved.is_err() {
            // The host will commit the turn again, so the turn must not count as known.
            tree.committed.pop_back();
        }
        saved.map(|()| TurnStatus::Committed)
    }

    fn prepare_subagent_spawn(&mut self, spawn: &SubagentSpawn, host: &mut Host<'_>) -> Result<()> {
        let parent = self.tree(&spawn.parent_session_key, host)?;
        let inherited: Vec<&str> = parent
            .top
            .iter()
            .filter_map(|id| parent.nodes.get(id))
            .map(|node| node.text.as_str())
            .collect();
        if inherited.is_empty() {
            return Ok(());
        }
        let parent = &spawn.parent_session_key;
        let inherited = clip(&inherited.join("\n\n"), INHERITED);
        let origin = format!(
            "This session was started by the session {parent}. What had been said there, for \
             reference:\n{inherited}"
        );
        let child = self.tree(&spawn.child_session_key, host)?;
        child.origin = Some(origin);
        store::save_head(&spawn.child_session_key, child, host)
    }

    fn rollback_subagent_spawn(
        &mut self,
        spawn: &SubagentSpawn,
        host: &mut Host<'_>,
    ) -> Result<()> {
        let child = self.tree(&spawn.child_session_key, host)?;
        if child.origin.take().is_none() {
            return Ok(());
        }
        if child.top.is_empty() && child.committed.is_empty() {
            self.trees.remove(&spawn.child_session_key);
            return store::forget(&spawn.child_session_key, host);
        }
        store::save_head(&spawn.child_session_key, child, host)
    }

    fn on_subagent_ended(&mut self, ended: &SubagentEnded, host: &mut Host<'_>) -> Result<()> {
        self.trees.remove(&ended.child_session_key);
        match ended.reason {
            SubagentReason::Deleted => store::forget(&ended.child_session_key, host),
            _ => Ok(()),
        }
    }
}

/// Whether the budget has room for the summaries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Capacity {
    Enough,
    None,
}

/// Keeps only protected rows. The host trims them if they do not fit. The summaries of the other
/// rows remain in the tree, and are used again when they fit.
fn protected_only(session: &Session) -> Assembled {
    let (stay, go): (Vec<_>, Vec<_>) = session.rows().iter().partition(|row| row.keep);
    let plan = Plan::drop(go.iter().map(|row| row.id.as_str()));
    Assembled {
        estimated_tokens: Some(stay.iter().map(|row| row.tokens).sum()),
        ..plan.because("protected messages leave no room for summaries").into()
    }
}

/// Folds messages until they are below the threshold, or at least fit the budget.
fn fold_excess(
    tree: &mut Tree,
    fold: &mut Fold<'_>,
    config: &Config,
    sizes: &Sizes,
    writer: &mut Writer<'_, '_>,
) -> Result<Capacity> {
    let fanout = config.fanout;
    fold.merge_levels(tree, sizes, fanout, writer)?;
    if fold.tokens(tree) <= sizes.threshold {
        return Ok(Capacity::Enough);
    }
    let until = fold.tail(sizes.tail);
    fold.fold(tree, until, Rest::Stays, sizes, fanout, writer)?;
    fold.merge_until(tree, sizes.summaries, sizes, fanout, writer)?;
    if fold.tokens(tree) <= sizes.room {
        return Ok(Capacity::Enough);
    }
    // The tail alone is too large: fold it as well, except protected rows.
    fold.fold(tree, usize::MAX, Rest::Leaf, sizes, fanout, writer)?;
    let over = fold.tokens(tree).saturating_sub(sizes.room);
    let left = fold.summaries(tree).saturating_sub(over);
    fold.merge_until(tree, left, sizes, fanout, writer)?;
    Ok(if fold.tokens(tree) > sizes.room { Capacity::None } else { Capacity::Enough })
}
