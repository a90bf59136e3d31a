//! Properties of chunks, texts and file lists for any input.

use std::collections::{BTreeSet, HashMap};
use std::ops::Range;
use std::sync::Arc;

use ctx_compaction::{
    ChunkRatio, History, SAFETY_MARGIN, SerializeOptions, chunk_by_max_tokens, serialize,
    split_by_token_share,
};
use ctx_core::{
    Block, Chars, ContextView, Counter, Entry, Message, RawJson, Role, TokenLedger, Tokens,
    ToolCall,
};
use ctx_facts::{CitedMessage, FileLists};
use proptest::prelude::*;

fn sizes_and_groups() -> impl Strategy<Value = (Vec<Tokens>, Vec<u32>)> {
    prop::collection::vec((0..2_000u32, 0..30u32), 0..60)
        .prop_map(|pairs| pairs.into_iter().map(|(size, group)| (Tokens(size), group)).unzip())
}

/// Checks that non-empty ranges cover everything, in order, without gaps, and split no group.
fn tile(ranges: &[Range<usize>], groups: &[u32]) -> Result<(), TestCaseError> {
    let mut next = 0;
    let mut homes: HashMap<u32, usize> = HashMap::new();
    for (piece, range) in ranges.iter().enumerate() {
        prop_assert!(range.start == next && range.end > range.start);
        next = range.end;
        for &group in &groups[range.clone()] {
            prop_assert_eq!(*homes.entry(group).or_insert(piece), piece);
        }
    }
    prop_assert_eq!(next, groups.len());
    Ok(())
}

fn said(message: Message) -> CitedMessage {
    CitedMessage { id: "1".into(), message: Arc::new(message), pinned: false }
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 256,
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn chunks_and_parts_hold_everything_once_and_groups_together(
        (sizes, groups) in sizes_and_groups(),
        max in 0..5_000u32,
        parts in 0..9usize,
        min in 0..9usize,
    ) {
        let chunks = chunk_by_max_tokens(&sizes, &groups, Tokens(max));
        tile(&chunks, &groups)?;
        let pieces = split_by_token_share(&sizes, &groups, parts, min);
        tile(&pieces, &groups)?;
        prop_assert!(pieces.len() <= parts.max(1));

        // Without groups only a single message can be larger than the cap.
        for chunk in chunk_by_max_tokens(&sizes, &[], Tokens(max)) {
            let sum: u64 = sizes[chunk.clone()].iter().map(|size| size.get()).sum();
            prop_assert!(chunk.len() == 1 || sum as f64 * SAFETY_MARGIN <= f64::from(max) + 1e-6);
        }
        for formula in [ChunkRatio::Pi, ChunkRatio::Ponybunny] {
            let ratio = formula.of(&sizes, Tokens(max));
            prop_assert!((0.15..=0.4).contains(&ratio), "{}", ratio);
        }
    }

    #[test]
    fn every_list_of_files_is_found_again(
        read in prop::collection::btree_set(any::<String>(), 0..5),
        modified in prop::collection::btree_set("[ -~\n<>\"]{1,12}", 0..5),
    ) {
        let lists = FileLists { read_files: read, modified_files: modified }.normalised();
        let text = format!("## Goal\n\n{}\n\nmore", lists.render());
        prop_assert_eq!(FileLists::in_summary(&text), lists);
    }

    #[test]
    fn any_call_is_written_within_its_cap(
        name in any::<String>(),
        arguments in any::<String>(),
        value in any::<String>(),
        cap in 0..200u32,
    ) {
        for json in [arguments, serde_json::json!({ "path": value }).to_string()] {
            let call = ToolCall::new("c", name.clone(), RawJson::from_text(json));
            let message = Message::new(Role::Assistant, vec![Block::ToolCall(call)]);
            let said = [said(message)];
            let options = SerializeOptions { text_chars: Some(Chars(cap)), ..Default::default() };
            let text = serialize(&said, &options);
            prop_assert!(Chars::of(&text).0 <= 2 * cap + 100, "{}", text);
            let files: BTreeSet<String> = FileLists::of(&said).read_files;
            prop_assert!(files.len() <= 1);
        }
    }
}

#[test]
fn a_foreign_summary_cites_nothing_that_never_was() {
    let text = "## Goal\n- Keep the wire format [e:0000000a]\n- Ship on Friday [e:deadbeef]";
    let audited = r#"{"readFiles":[],"modifiedFiles":[],"receipt":{}}"#;
    for (details, expected) in [
        (None, "## Goal\n- Keep the wire format [e:0000000a]\n- Ship on Friday"),
        (
            Some(r#"{"readFiles":[]}"#),
            "## Goal\n- Keep the wire format [e:0000000a]\n- Ship on Friday",
        ),
        // An audited summary may cite entries that have left the view.
        (Some(audited), text),
    ] {
        let ledger = TokenLedger::new(Counter::default(), Tokens(8_000), Tokens(2_000));
        let mut view = ContextView::new(ledger);
        let mut summary = Message::text(Role::CompactionSummary, text);
        summary.meta.details = details.map(RawJson::from_text);
        view.append(Arc::new(Entry::in_memory("summary", summary))).unwrap();
        view.append(Arc::new(Entry::in_memory("0000000a", Message::text(Role::User, "go on"))))
            .unwrap();
        let previous = History::of(&view).unwrap().previous.unwrap();
        assert_eq!(previous.text, expected, "{details:?}");
    }
}
