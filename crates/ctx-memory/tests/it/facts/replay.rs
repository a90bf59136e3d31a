use ctx_facts::Statement;
use ctx_memory::facts::{Fact, FactCandidate, FactKind, FactSelector, Update, decide};
use proptest::prelude::*;

use super::{candidate, named, open};

fn contents() -> impl Strategy<Value = String> {
    let subject = prop::sample::select(vec![
        "Server port",
        "API timeout",
        "storage",
        "login test",
        "refund logic",
        "数据库端口",
        "x",
    ]);
    let value = prop::sample::select(vec!["3000", "8080", "PostgreSQL", "/api/v1", "not yet done"]);
    prop_oneof![
        (subject.clone(), value.clone()).prop_map(|(s, v)| format!("{s} is {v}")),
        (subject.clone(), value.clone()).prop_map(|(s, v)| format!("Use {v} for {s}")),
        (subject.clone(), value).prop_map(|(s, v)| format!("Do not use {v} instead of {s}")),
        subject.prop_map(|s| format!("{s} implemented and fixed")),
        any::<String>(),
    ]
}

fn candidates() -> impl Strategy<Value = FactCandidate> {
    (contents(), 0..6usize, 0..20i64).prop_map(|(content, kind, at)| {
        candidate(
            [FactKind::Config, FactKind::Decision, FactKind::TaskState][kind % 3],
            &content,
            at,
        )
    })
}

fn decided(facts: &[Fact], candidate: &FactCandidate) -> Update {
    let read: Vec<_> = facts.iter().map(|fact| (fact, Statement::of(&fact.content))).collect();
    decide(read.iter().map(|(fact, statement)| (*fact, statement)), candidate)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn the_reread_file_has_the_facts_in_memory(all in prop::collection::vec(candidates(), 0..25)) {
        let dir = tempfile::tempdir().unwrap();
        let mut store = open(&dir);
        for some in all.chunks(3) {
            store.learn(some.iter().cloned()).unwrap();
        }
        prop_assert!(open(&dir).facts().eq(store.facts()));
        for fact in store.facts() {
            // A superseded fact names an existing successor and ends when that begins.
            if let Some(next) = fact.superseded_by {
                let next = store.get(next);
                prop_assert!(next.is_some_and(|next| fact.valid_to == Some(next.valid_from)));
            }
            prop_assert_eq!(fact.superseded_by.is_some(), fact.valid_to.is_some());
        }
        store.forget(&[FactSelector::Entries { session: "s", ids: &named(&["e3", "e4", "e5"]) }]).unwrap();
        prop_assert!(open(&dir).facts().eq(store.facts()));
        for fact in store.facts() {
            prop_assert!(fact.superseded_by.is_none_or(|next| store.get(next).is_some()));
        }
    }

    #[test]
    fn a_learned_fact_is_known(one in candidates(), others in prop::collection::vec(candidates(), 0..6)) {
        let facts: Vec<_> = others.into_iter().map(FactCandidate::into_fact).collect();
        let update = decided(&facts, &one);
        match &update {
            Update::Update { id } | Update::None { id } => {
                prop_assert!(facts.iter().any(|fact| fact.id == *id));
            }
            Update::Supersede { ids } | Update::Retire { ids, .. } => {
                prop_assert!(!ids.is_empty() && ids.iter().all(|id| facts.iter().any(|f| f.id == *id)));
            }
            Update::Add => {}
        }
        let fact = one.clone().into_fact();
        let id = fact.id;
        prop_assert_eq!(decided(&[fact], &one), Update::None { id });
    }
}
