//! Files of the workspace in a request.

use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use ctx_core::{
    ContextView, Error, ErrorKind, Layer, Result, Role, Snippet, SnippetSource, Tokens,
    WorkspaceAnswer, WorkspaceSearch,
};
use ctx_workspace::{Config, Placement, WorkspaceLayer};

use ctx_testkit::memory::{ScriptedMemory, say, texts, turn, view};

/// Returns its configured answer, and records the questions.
#[derive(Default)]
struct Files {
    snippets: Vec<Snippet>,
    asked: Mutex<Vec<String>>,
    fails: bool,
}

impl Files {
    fn with(texts: &[&str]) -> Arc<Self> {
        let snippet = |(at, text): (usize, &&str)| Snippet {
            source: SnippetSource::Files,
            path: format!("f{at}.md"),
            first_line: 1,
            last_line: text.lines().count() as u32,
            text: (*text).to_owned(),
            score: 1.0 - at as f32 / 100.0,
        };
        let snippets = texts.iter().enumerate().map(snippet).collect();
        Arc::new(Self { snippets, ..Self::default() })
    }

    fn asked(&self) -> Vec<String> {
        self.asked.lock().expect("no test panicked before").clone()
    }
}

#[async_trait]
impl WorkspaceSearch for Files {
    async fn search(&self, query: &str, limit: usize) -> Result<WorkspaceAnswer> {
        self.asked.lock().expect("no test panicked before").push(query.to_owned());
        if self.fails {
            return Err(Error::new(ErrorKind::Io, "the disk is gone"));
        }
        let snippets = self.snippets.iter().take(limit).cloned().collect();
        Ok(WorkspaceAnswer { snippets, warnings: Vec::new() })
    }
}

fn layer(profile: &str, files: Arc<Files>) -> WorkspaceLayer {
    let profile: ctx_config::Profile = profile.parse().expect("a profile");
    let config = ctx_config::Config::for_profile(profile).section().expect("a valid section");
    WorkspaceLayer::new(config, files, None)
}

fn texts_of_block(view: &ContextView) -> String {
    let is_block = |text: &String| text.starts_with("<relevant_context>");
    texts(view).into_iter().find(is_block).unwrap_or_default()
}

fn blocks(view: &ContextView) -> usize {
    texts(view).iter().filter(|text| text.starts_with("<relevant_context>")).count()
}

#[test]
fn a_message_that_asks_for_a_file_gets_one_block_before_it() {
    let files = Files::with(&["fn main() {}"]);
    let layer = layer("openclaw", files.clone());
    let mut view = view(32_000);
    say(&mut view, Role::User, "/context where does it begin?");
    turn(&[&layer], &mut view);
    let before = texts(&view);
    assert_eq!(
        before[0],
        "<relevant_context>\n<file path=\"f0.md\" lines=\"1-1\">\nfn main() {}\n</file>\n\
         </relevant_context>"
    );
    say(&mut view, Role::Assistant, "in main");
    turn(&[&layer], &mut view);
    assert_eq!(texts(&view)[..2], before[..], "the prefix stays");
    assert_eq!(files.asked(), ["where does it begin?"], "asked once a turn");
    assert_eq!(view.system_addition(), None);
}

#[test]
fn a_message_that_asks_for_nothing_gets_none() {
    let files = Files::with(&["fn main() {}"]);
    let layer = layer("openclaw", files.clone());
    let mut view = view(32_000);
    say(&mut view, Role::User, "write a poem");
    turn(&[&layer], &mut view);
    say(&mut view, Role::User, "/context");
    turn(&[&layer], &mut view);
    assert_eq!((blocks(&view), files.asked().len()), (0, 0));
}

#[test]
fn under_ponybunny_the_block_is_part_of_the_system_prompt_while_its_message_is_the_newest() {
    let files = Files::with(&["fn main() {}"]);
    let layer = layer("ponybunny", files);
    let mut view = view(32_000);
    say(&mut view, Role::User, "explain `f0.md`");
    turn(&[&layer], &mut view);
    let addition = view.system_addition().unwrap().to_owned();
    assert!(addition.starts_with("<relevant_context>\n<file path=\"f0.md\""), "{addition}");
    assert_eq!((blocks(&view), texts(&view).len()), (0, 1));
    say(&mut view, Role::Assistant, "it begins");
    turn(&[&layer], &mut view);
    assert_eq!(view.system_addition(), Some(addition.as_str()), "through the turn");
    view.set_system_addition(None);
    turn(&[&layer], &mut view);
    assert_eq!(view.system_addition(), Some(addition.as_str()), "whoever took it out");
    say(&mut view, Role::User, "thank you");
    turn(&[&layer], &mut view);
    assert_eq!(view.system_addition(), None);
}

#[test]
fn recalled_text_follows_the_agents_notes() {
    let mut files = Files::default();
    files.snippets.push(Snippet {
        source: SnippetSource::Memory,
        path: "MEMORY.md".into(),
        first_line: 3,
        last_line: 3,
        text: "written down".into(),
        score: 0.2,
    });
    let memory = ScriptedMemory::with(&["said once"], &[]);
    let profile: ctx_config::Profile = "ponybunny".parse().expect("a profile");
    let config: Config =
        ctx_config::Config::for_profile(profile).section().expect("a valid section");
    let layer = WorkspaceLayer::new(config, Arc::new(files), Some(memory.clone()));
    let mut view = view(32_000);
    let id = say(&mut view, Role::User, "/recall the plan");
    turn(&[&layer], &mut view);
    let addition = view.system_addition().unwrap();
    let at = |text: &str| addition.find(text).unwrap_or_else(|| panic!("{text} in {addition}"));
    assert!(at("path=\"MEMORY.md\"") < at("path=\"sessions/old0\" lines=\"1-1\""), "{addition}");
    assert_eq!(memory.queries(), ["the plan"]);
    assert!(memory.asked.lock().unwrap()[0].visible.contains(id.as_str()));
}

#[test]
fn blocks_keep_to_their_budget_and_old_ones_are_removed() {
    let long = "word ".repeat(2_000);
    let files = Files::with(&[&long, &long, &long, &long]);
    let layer = layer("openclaw", files);
    let mut view = view(48_000);
    for n in 0..6 {
        say(&mut view, Role::User, &format!("/context question {n}"));
        turn(&[&layer], &mut view);
        let tokens: Vec<Tokens> = view
            .nodes()
            .iter()
            .filter(|node| node.is_live() && node.tokens() > Tokens(100))
            .map(|node| node.tokens())
            .collect();
        assert!(tokens.iter().all(|tokens| *tokens <= Tokens(6_000)), "{tokens:?}");
        assert!((1..=4).contains(&tokens.len()), "{tokens:?}");
        say(&mut view, Role::Assistant, "an answer");
    }
    assert_eq!(Config::default().placement, Placement::BeforeNewest);
}

#[test]
fn a_failing_workspace_causes_a_warning_and_the_request_continues() {
    let layer = layer("openclaw", Arc::new(Files { fails: true, ..Files::default() }));
    let mut view = view(32_000);
    say(&mut view, Role::User, "/context one thing");
    turn(&[&layer], &mut view);
    assert_eq!(texts(&view).len(), 1);
    let warnings = layer.take_warnings();
    assert!(warnings.len() == 1 && warnings[0].contains("the disk is gone"), "{warnings:?}");
    assert!(layer.take_warnings().is_empty(), "said once");
}

#[test]
fn many_files_leave_room_for_recalled_text_and_vice_versa() {
    let many = |what: &str| -> Vec<String> { (0..12).map(|n| format!("{what}{n}.")).collect() };
    let (files, said) = (many("file"), many("said"));
    let of = |texts: &[String]| -> Vec<String> { texts.to_vec() };
    for (files, said, expected) in [
        (of(&files), of(&said), (5, 5)),
        (of(&files), of(&said[..2]), (8, 2)),
        (of(&files[..3]), of(&said), (3, 7)),
        (of(&files[..1]), Vec::new(), (1, 0)),
    ] {
        let of_files: Vec<&str> = files.iter().map(String::as_str).collect();
        let told: Vec<&str> = said.iter().map(String::as_str).collect();
        let memory = ScriptedMemory::with(&told, &[]);
        // The archive's scores are small, and not comparable with scores of files.
        memory.answer.lock().unwrap().passages.iter_mut().for_each(|p| p.score *= 0.1);
        let config = Config { sessions: true, ..Config::default() };
        let layer = WorkspaceLayer::new(config, Files::with(&of_files), Some(memory));
        let mut view = view(200_000);
        say(&mut view, Role::User, "/recall the plan");
        turn(&[&layer], &mut view);
        let all = texts_of_block(&view);
        let count = |what: &[String]| what.iter().filter(|text| all.contains(*text)).count();
        assert_eq!((count(&files), count(&said)), expected, "{all}");
    }
}

#[test]
fn text_already_recalled_by_memory_is_not_added_again() {
    let memory = ScriptedMemory::with(&["said once"], &[]);
    let recall = ctx_memory::Recall::new(
        ctx_memory::Config { enabled: true, ..ctx_memory::Config::default() },
        memory.clone(),
    );
    let config = Config { sessions: true, ..Config::default() };
    let layer = WorkspaceLayer::new(config, Files::with(&["a file"]), Some(memory));
    let mut view = view(32_000);
    say(&mut view, Role::User, "/recall what was said");
    turn(&[&recall, &layer], &mut view);
    let all = texts(&view).join("\n");
    assert_eq!(all.matches("said once").count(), 1, "{all}");
    assert_eq!(blocks(&view), 1, "{all}");
}
