//! No plan breaks pairs, protection or the budget.

use std::collections::HashSet;

use ctx_core::{ContextView, Message, Role, check_pairs};
use ctx_engine_registry::foreign::{CheckContext, SyncOptions, ViewSync, apply, check};
use ctx_engine_sdk::protocol::{Assembled, Contract};
use proptest::prelude::*;
use serde_json::{Value, json};

use super::{calls, entry, live, say, view};

/// Returns the id of the row with that number, or an unknown id beyond the last row.
fn id(n: usize, rows: &[String]) -> String {
    rows.get(n).cloned().unwrap_or_else(|| format!("n{n}"))
}

fn session(turns: usize) -> ContextView {
    let mut view = view(6_000);
    say(&mut view, "sys", Role::System, "be brief");
    for n in 0..turns {
        say(&mut view, &format!("u{n}"), Role::User, &"a question ".repeat(10));
        let (one, two) = (format!("c{n}"), format!("d{n}"));
        view.append(entry(&format!("a{n}"), calls(&[&one, &two]))).unwrap();
        for call in [one, two] {
            let result = Message::tool_result(&*call, "a result ".repeat(50));
            view.append(entry(&format!("r{call}"), result)).unwrap();
        }
    }
    view
}

fn plan(turns: usize) -> impl Strategy<Value = Value> {
    let rows = live(&session(turns));
    let some = prop::collection::vec(0..rows.len() + 2, 0..12);
    let keep_last = prop::option::weighted(0.3, 0..rows.len() + 3);
    (keep_last, some.clone(), some.clone(), some.clone(), some, any::<bool>()).prop_map(
        move |(keep_last, drop, replace, insert, pin, in_full)| {
            let ids = |of: &[usize]| of.iter().map(|&n| id(n, &rows)).collect::<Vec<_>>();
            if in_full {
                let mut named = drop;
                named.sort_unstable();
                named.dedup();
                let goes: HashSet<usize> = named.into_iter().collect();
                let left = (0..rows.len()).filter(|n| !goes.contains(n));
                return json!({"messages": left.map(|n| json!({"id": rows[n]})).collect::<Vec<_>>()});
            }
            let replace = ids(&replace).into_iter().map(|id| json!({"id": id, "text": "short"}));
            let insert = insert.iter().enumerate().map(|(at, &n)| {
                json!({"id": format!("new{at}"), "before": id(n, &rows), "text": "new"})
            });
            json!({
                "keepLast": keep_last,
                "drop": ids(&drop),
                "replace": replace.collect::<Vec<_>>(),
                "insert": insert.collect::<Vec<_>>(),
                "pin": ids(&pin),
            })
        },
    )
}

proptest! {
    #[test]
    fn no_plan_breaks_pairs_protection_or_budget(plan in (1..12_usize).prop_flat_map(
        |turns| (Just(turns), plan(turns))
    )) {
        let (turns, plan) = plan;
        let mut view = session(turns);
        let before = live(&view);
        let edits = view.edits().len();
        let must_stay: Vec<String> = (0..view.len())
            .filter(|&at| view.is_protected(at))
            .map(|at| view.node(at).entry().id().to_string())
            .collect();
        let telling = SyncOptions { contract: &Contract::default(), ingested: &HashSet::new() };
        let (sync, _) = ViewSync::all(&view, telling);
        let answer: Assembled = serde_json::from_str(&plan.to_string()).unwrap();
        match check(answer, CheckContext { view: &view, sync: &sync, adds_only: false }) {
            Ok(checked) => {
                let tokens = checked.tokens;
                apply(checked, &mut view, "any").unwrap();
                prop_assert_eq!(view.total(), tokens);
            }
            Err(_) => {
                prop_assert_eq!(live(&view), before);
                prop_assert_eq!(view.edits().len(), edits);
            }
        }
        let finished = view.finish().unwrap();
        prop_assert!(finished.tokens <= view.ledger().limit());
        let messages = view.messages().unwrap();
        prop_assert!(check_pairs(messages.iter().map(|message| &**message)).is_ok());
        let left = live(&view);
        prop_assert!(must_stay.iter().all(|id| left.contains(id)), "{must_stay:?} in {left:?}");
    }
}
