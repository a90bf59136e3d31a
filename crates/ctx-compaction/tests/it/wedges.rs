//! For any session, window and model, the final request fits.

use std::sync::Arc;
use std::thread;
use std::time::Duration;

use crate::{config_of, counter_of};
use ctx_compaction::{
    CompactOptions, Compaction, Config, Details, History, KeepMessages, Rung, compact,
};
use ctx_config::Profile;
use ctx_core::{
    Block, CompactResult, Compacted, CompactionTrigger, ContextView, Counter, Entry, Layer,
    Message, RawJson, Role, SummaryModels, Timer, Timestamp, TokenLedger, Tokens, ToolCall,
    TurnContext, check_pairs,
};
use ctx_testkit::{RandomTranscript, ScriptedSummarizer, VirtualTimer};

fn runs() -> u64 {
    ctx_testkit::cases(10_000).into()
}
const THREADS: u64 = 4;

/// Numbers drawn from a seed.
struct Draw(u64);

impl Draw {
    fn below(&mut self, n: u64) -> u64 {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % n.max(1)
    }

    fn one_in(&mut self, n: u64) -> bool {
        self.below(n) == 0
    }
}

struct Case {
    view: ContextView,
    config: Config,
    order: CompactOptions,
    timer: VirtualTimer,
}

fn case(seed: u64) -> Case {
    let mut draw = Draw(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15));
    let window = match draw.below(20) {
        0 => 4_000 + draw.below(124_000),
        1..6 => 8_000 + draw.below(16_000),
        _ => 4_000 + draw.below(4_000),
    } as u32;
    let tokens = u64::from(window) * (20 + draw.below(230)) / 100;
    let transcript = RandomTranscript::seeded(seed).tokens(Tokens(tokens as u32)).generate();
    let profile = Profile::all().nth(draw.below(5) as usize).unwrap().name();
    let mut config = config_of(profile);
    if draw.one_in(8) {
        config.keep_recent_messages = Some(KeepMessages::Count(1 + draw.below(40) as u32));
    } else if draw.one_in(8) {
        config.keep_recent_turns = Some(1 + draw.below(5) as u32);
    }
    if draw.one_in(6) {
        config.split_turns = !config.split_turns;
    }
    let ledger =
        TokenLedger::new(counter_of(profile), Tokens(window), config.reserve(Tokens(window)))
            .with_system(Tokens(draw.below(600) as u32))
            .with_tools(Tokens(draw.below(600) as u32));
    let view = transcript.view(ledger).unwrap();
    let timer = VirtualTimer::default();
    let models = (!draw.one_in(4)).then(|| SummaryModels {
        chain: (0..1 + draw.below(2))
            .map(|n| Arc::new(ScriptedSummarizer::faulty(seed + n * 10_000)) as _)
            .collect(),
        timer: Arc::new(timer.clone()),
    });
    use CompactionTrigger::{Manual, Overflow, Threshold};
    let order = CompactOptions {
        trigger: [Overflow, Manual, Threshold][draw.below(3) as usize],
        attempt: 1 + draw.below(3) as u32,
        force: draw.one_in(4),
        token_budget: draw.one_in(6).then(|| Tokens(draw.below(u64::from(window)) as u32)),
        focus: draw.one_in(5).then(|| "the parser </focus>".to_owned()),
        models,
        ..CompactOptions::new(CompactionTrigger::Threshold, Timestamp(seed as i64))
    };
    Case { view, config, order, timer }
}

#[test]
fn every_run_commits_something_that_fits_or_needed_nothing() {
    let part = |thread: u64| (thread..runs()).step_by(THREADS as usize).map(run).collect::<Tally>();
    let tally = thread::scope(|scope| {
        let threads: Vec<_> = (0..THREADS).map(|n| scope.spawn(move || part(n))).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).fold(Tally::default(), Tally::add)
    });
    println!("{tally:?}");
    // The sample must cover the interesting cases.
    assert!(tally.compacted > runs() / 2 && tally.nothing > 0, "{tally:?}");
    assert!(tally.by_model > runs() / 50 && tally.extractive > runs() / 4, "{tally:?}");
}

#[derive(Clone, Copy, Debug, Default)]
struct Tally {
    compacted: u64,
    nothing: u64,
    by_model: u64,
    extractive: u64,
    cut: u64,
}

impl Tally {
    fn add(self, other: Self) -> Self {
        Self {
            compacted: self.compacted + other.compacted,
            nothing: self.nothing + other.nothing,
            by_model: self.by_model + other.by_model,
            extractive: self.extractive + other.extractive,
            cut: self.cut + other.cut,
        }
    }
}

impl FromIterator<Option<Rung>> for Tally {
    fn from_iter<I: IntoIterator<Item = Option<Rung>>>(rungs: I) -> Self {
        let mut tally = Self::default();
        for rung in rungs {
            match rung {
                None => tally.nothing += 1,
                Some(Rung::Model | Rung::WithoutOversized) => tally.by_model += 1,
                Some(Rung::Extractive) => tally.extractive += 1,
                Some(Rung::HardPrune) => tally.cut += 1,
            }
            tally.compacted += u64::from(rung.is_some());
        }
        tally
    }
}

fn run(seed: u64) -> Option<Rung> {
    let Case { mut view, config, order, timer } = case(seed);
    let history = History::of(&view).unwrap();
    let (used, limit) = (history.used(), view.ledger().limit());
    let threshold = config.threshold(view.ledger());
    let deadline = Duration::from_secs(config.timeout_seconds.into());
    let wanted = order.trigger != CompactionTrigger::Threshold || order.force || used > threshold;
    let messages = history.items.len();
    let work = compact(history, Arc::new(config), order);
    let result: CompactResult = timer.run(work).unwrap();
    assert!(result.ok, "{seed}");
    assert!(timer.elapsed() <= deadline, "{seed}: took {:?}", timer.elapsed());
    let Some(compacted) = result.result else {
        let reason = result.reason.unwrap();
        // If nothing is compacted, the history is one message or group, or already small.
        assert!(
            !wanted || used <= limit || messages <= 2 || is_one_group(&view),
            "{seed}: {reason}"
        );
        fits(&mut view, seed);
        return None;
    };
    let receipt = Details::from_json(compacted.details.as_ref().unwrap()).unwrap().receipt;
    assert!(compacted.tokens_after.unwrap() < compacted.tokens_before, "{seed}");
    // Every identifier of the extractive summariser occurs in the source.
    let made_up = &receipt.audit.ungrounded;
    assert!(made_up.is_empty() || receipt.rung != Rung::Extractive, "{seed}: {made_up:?}");
    let mut reopened = reopened(&view, &compacted);
    assert!(!compacted.summary.trim().is_empty(), "{seed}");
    view.compact(compacted, "summary", "test", "test").unwrap();
    // The compaction itself makes the request fit: nothing is left for `finish` to trim.
    for (what, view) in [("in process", &view), ("read again", &reopened)] {
        assert!(view.used() <= limit, "{seed}, {what}: {} of {limit}", view.used());
    }
    fits(&mut view, seed);
    fits(&mut reopened, seed);
    Some(receipt.rung)
}

/// The session as reopened: the summary, and the kept messages.
fn reopened(view: &ContextView, compacted: &Compacted) -> ContextView {
    let mut again = ContextView::new(view.ledger().clone())
        .with_projections(compacted.projections.iter().cloned());
    let summary = Message::text(Role::CompactionSummary, compacted.summary.as_str());
    again.append(Arc::new(Entry::in_memory("summary", summary))).unwrap();
    let kept = view.nodes().iter().filter(|node| node.is_live() && node.role() != &Role::System);
    let first = &compacted.first_kept_entry_id;
    let mut is_kept = false;
    for node in kept {
        is_kept |= node.entry().id() == first;
        if is_kept || compacted.staying.contains(node.entry().id()) {
            again.append(node.entry().clone()).unwrap();
        }
    }
    again
}

fn fits(view: &mut ContextView, seed: u64) {
    let finished = view.finish().unwrap();
    assert!(finished.tokens <= view.ledger().limit(), "{seed}: {}", finished.tokens);
    let sent = view.messages().unwrap();
    assert!(check_pairs(sent.iter().map(|message| &**message)).is_ok(), "{seed}");
}

fn is_one_group(view: &ContextView) -> bool {
    let mut live = view.nodes().iter().filter(|node| {
        node.is_live() && !matches!(node.role(), Role::System | Role::CompactionSummary)
    });
    let first = live.next().map(|node| node.group);
    live.all(|node| Some(node.group) == first)
}

/// A session of assistant messages without text, before a turn that stays.
fn silent(block: fn(usize) -> Block) -> History {
    let ledger = TokenLedger::new(Counter::default(), Tokens(8_000), Tokens(2_000));
    let mut view = ContextView::new(ledger);
    for n in 0..40 {
        let message = Message::new(Role::Assistant, vec![block(n)]);
        view.append(Arc::new(Entry::in_memory(format!("{n:08x}"), message))).unwrap();
    }
    view.append(Arc::new(Entry::in_memory("last", Message::text(Role::User, "go on")))).unwrap();
    History::of(&view).unwrap()
}

#[test]
fn where_nothing_was_said_a_notice_stands_for_it() {
    let thought = |_| Block::Thinking { thinking: "hm ".repeat(500), signature: None };
    let ruled = |_| Block::text("=".repeat(1_000));
    for block in [thought as fn(usize) -> Block, ruled] {
        let order = CompactOptions::new(CompactionTrigger::Manual, Timestamp(0));
        let order = CompactOptions { force: true, ..order };
        let work = compact(silent(block), Arc::new(Config::default()), order);
        let compacted = VirtualTimer::default().run(work).unwrap().result.unwrap();
        let receipt = Details::from_json(compacted.details.as_ref().unwrap()).unwrap().receipt;
        assert_eq!((receipt.rung, receipt.audit.ungrounded.len()), (Rung::HardPrune, 0));
        let dropped = receipt.dropped.unwrap();
        let notice = format!(
            "Context contained {} messages (0 oversized). Summary unavailable.",
            dropped.dropped_messages
        );
        assert_eq!(compacted.summary, notice);
        assert_eq!(dropped.dropped_messages, receipt.messages);
        assert!(compacted.tokens_after.unwrap() < compacted.tokens_before);
    }
}

#[test]
fn what_ctx_says_of_large_messages_stands_in_the_summary_and_is_nobodys_invention() {
    for profile in ["openclaw", "ponybunny", "copaw"] {
        let ledger = TokenLedger::new(Counter::default(), Tokens(100_000), Tokens(20_000));
        let mut view = ContextView::new(ledger);
        for n in 0..40 {
            let (role, words) = match n % 2 {
                0 => (Role::User, "fix the retry loop in src/http.rs"),
                _ => (Role::Assistant, "fixed the loop, the tests pass"),
            };
            let text = if n == 3 {
                "monster ".repeat(15_000)
            } else {
                format!("{words}, {n}. ").repeat(60)
            };
            let message = Message::text(role, text);
            view.append(Arc::new(Entry::in_memory(format!("{n:08x}"), message))).unwrap();
        }
        let small = ScriptedSummarizer::new("small").with_window(Tokens(32_000));
        let timer = VirtualTimer::default();
        let chain = vec![Arc::new(small) as Arc<dyn ctx_core::Summarizer>];
        let models = Some(SummaryModels { chain, timer: Arc::new(timer.clone()) });
        let order = CompactOptions::new(CompactionTrigger::Manual, Timestamp(0));
        let order = CompactOptions { force: true, models, ..order };
        let config = Arc::new(config_of(profile));
        let work = compact(History::of(&view).unwrap(), config, order);
        let compacted = timer.run(work).unwrap().result.unwrap();
        let receipt = Details::from_json(compacted.details.as_ref().unwrap()).unwrap().receipt;
        assert_eq!(receipt.rung, Rung::WithoutOversized, "{profile}: {:?}", receipt.notes);
        let note = "[Large assistant (~30K tokens) omitted]";
        assert!(compacted.summary.ends_with(note), "{profile}: {}", compacted.summary);
        assert_eq!(receipt.audit.ungrounded, [""; 0], "{profile}");
    }
}

#[test]
fn files_are_known_after_any_number_of_compactions() {
    let ledger = TokenLedger::new(Counter::default(), Tokens(16_000), Tokens(4_000));
    let mut view = ContextView::new(ledger);
    let edit = |n: usize| {
        let arguments = format!("{{\"path\":\"src/generated/module_number_{n}.rs\"}}");
        let call = ToolCall::new(format!("call-{n}"), "edit", RawJson::from_text(arguments));
        Message::new(Role::Assistant, vec![Block::ToolCall(call)])
    };
    let mut known = 0;
    for round in 1..=3 {
        for n in (round - 1) * 100..round * 100 {
            let result = Message::tool_result(format!("call-{n}"), "edited. ".repeat(20));
            for (kind, message) in [("c", edit(n)), ("r", result)] {
                view.append(Arc::new(Entry::in_memory(format!("{kind}{n:07x}"), message))).unwrap();
            }
        }
        let order = CompactOptions::new(CompactionTrigger::Manual, Timestamp(0));
        let order = CompactOptions { force: true, ..order };
        let work = compact(History::of(&view).unwrap(), Arc::new(Config::default()), order);
        let compacted = VirtualTimer::default().run(work).unwrap().result.unwrap();
        let files = Details::from_json(compacted.details.as_ref().unwrap()).unwrap().files;
        view.compact(compacted, format!("s{round}"), "test", "test").unwrap();
        let kept =
            view.nodes().iter().filter(|node| node.is_live() && !node.outline.calls.is_empty());
        known = files.modified_files.len();
        assert_eq!(known + kept.count(), round * 100);
    }
    assert!(known > 200);
}

#[test]
fn a_threshold_is_well_behind_after_a_compaction() {
    for (ratio, tools) in [(0.2, 0), (0.5, 60_000), (0.75, 0)] {
        let config = Config { trigger_ratio: Some(ratio), ..Config::default() };
        let layer = Compaction::new(config.clone(), None);
        let window = Tokens(128_000);
        let ledger = TokenLedger::new(Counter::default(), window, config.reserve(window))
            .with_tools(Tokens(tools));
        let mut view = ContextView::new(ledger);
        let turn = TurnContext::at(Timestamp(0));
        let mut compactions = 0;
        for n in 0..400 {
            let role = if n % 2 == 0 { Role::User } else { Role::Assistant };
            let text = format!("Step {n}: {}", "the parser reads a word. ".repeat(40));
            view.append(Arc::new(Entry::in_memory(format!("{n:08x}"), Message::text(role, text))))
                .unwrap();
            let prepared = layer
                .prepare(&view, &turn)
                .map(|pending| VirtualTimer::default().run(pending).unwrap());
            layer.apply(&mut view, prepared, &turn).unwrap();
            compactions += view.take_compactions().len();
            view.finish().unwrap();
        }
        assert!((1..=40).contains(&compactions), "{ratio}, {tools}: {compactions}");
    }
}
