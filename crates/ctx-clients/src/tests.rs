//! Setups and their undo, of all clients.

use std::fs;
use std::path::{Path, PathBuf};

use ctx_core::ErrorKind;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::{Client, Environment, Family, Proxy, Scope, Setup, Undo};

const URL: &str = "http://127.0.0.1:8787";

/// A home folder with configuration.
struct Place {
    home: TempDir,
    environment: Environment,
}

impl Place {
    fn new() -> Self {
        let home = tempfile::tempdir().unwrap();
        let root = fs::canonicalize(home.path()).unwrap();
        let folder = root.join("project");
        fs::create_dir(&folder).unwrap();
        Self { home, environment: Environment { home: root, folder, ..Environment::default() } }
    }

    fn records(&self) -> PathBuf {
        self.environment.home.join(".ctx/setup")
    }

    fn write(&self, path: &str, text: &str) -> PathBuf {
        let path = self.environment.home.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, text).unwrap();
        path
    }

    fn plan_at(&self, client: Client, url: &str) -> ctx_core::Result<Setup> {
        let scope = scope_of(client, &self.environment.folder);
        let mut files = client.base_url_files(&scope, &Proxy::at(url), &self.environment)?;
        files.extend(client.mcp_file(&scope, "ctx", &self.environment).ok());
        Setup::plan(client, scope, files, &self.records())
    }

    fn set_up(&self, client: Client) -> Setup {
        let setup = self.plan_at(client, URL).unwrap();
        let servers = setup.lost_servers(&self.records(), &self.environment).unwrap();
        setup.apply(&self.records(), &servers).unwrap();
        setup
    }

    /// Returns the servers that a setup replaces.
    fn lost(&self, client: Client) -> Vec<(Family, String)> {
        let setup = self.plan_at(client, URL).unwrap();
        setup.lost_servers(&self.records(), &self.environment).unwrap()
    }

    fn undo(&self, client: Client) -> Undo {
        let scope = scope_of(client, &self.environment.folder);
        let undo = Undo::plan(&self.records(), client, &scope).unwrap();
        undo.apply(&self.records()).unwrap();
        undo
    }

    /// Returns all files with their bytes, but those of ctx.
    fn files(&self) -> Vec<(PathBuf, Vec<u8>)> {
        let mut found = Vec::new();
        let mut folders = vec![self.home.path().to_owned()];
        while let Some(folder) = folders.pop() {
            for item in fs::read_dir(folder).unwrap().map(|item| item.unwrap().path()) {
                match item.is_dir() {
                    true if item.ends_with(".ctx") => {}
                    true => folders.push(item),
                    false => found.push((item.clone(), fs::read(item).unwrap())),
                }
            }
        }
        found.sort();
        found
    }
}

fn scope_of(client: Client, folder: &Path) -> Scope {
    match client {
        Client::Sdk => Scope::Project(folder.to_owned()),
        _ => Scope::User,
    }
}

/// Files of users, with the layout that tools do not write.
const FILES: [(&str, &str); 10] = [
    (".claude/settings.json", "{ // mine\n\t\"model\":\"opus\", \"env\": {\"A\":\"1\"},\n}\r\n"),
    (".claude.json", "{\"projects\":{},\"mcpServers\":{\"x\":{\"command\":\"x\"}}}"),
    (".codex/config.toml", "model   = 'gpt' # best\n[features]\n\n\n  a=true"),
    (".gemini/.env", "GEMINI_API_KEY=k"),
    (".config/opencode/opencode.jsonc", "{\n  // c\n  \"provider\": {\"openai\": {}}\n}"),
    (".qwen/.env", "# none\r\nOPENAI_BASE_URL=\"https://api.openai.com/v1\"\r\n"),
    (".pi/agent/models.json", "{}"),
    (
        ".openclaw/openclaw.json",
        "{models: {providers: {'a': {baseUrl: 'http://10.0.0.1/v1', models: []}}}, // json5\n}",
    ),
    (".aider.conf.yml", "model: openai/gpt\n# openai-api-base: x\n"),
    ("project/.env", "OPENAI_API_KEY=k\n"),
];

#[test]
fn every_client_is_set_up_and_restored_byte_for_byte() {
    for has_files in [true, false] {
        let place = Place::new();
        for (path, text) in FILES.iter().filter(|(path, _)| has_files || path.contains("openclaw"))
        {
            place.write(path, text);
        }
        let before = place.files();
        for client in Client::ALL {
            assert!(!place.set_up(client).files().is_empty(), "{client}");
            let again = place.plan_at(client, URL).unwrap();
            assert!(again.files().is_empty(), "{client} is set up already");
        }
        let written: Vec<_> =
            place.files().into_iter().filter(|file| !before.contains(file)).collect();
        assert_eq!(written.len(), if has_files { FILES.len() + 2 } else { 12 });
        for (path, bytes) in &written {
            let text = String::from_utf8_lossy(bytes);
            assert!(text.contains("127.0.0.1:8787") || text.contains("mcp"), "{path:?}: {text}");
        }
        for client in Client::ALL {
            place.undo(client);
        }
        assert_eq!(place.files(), before);
        assert!(!place.records().exists(), "nothing stays");
    }
}

#[test]
fn setups_are_undone_to_the_first() {
    let place = Place::new();
    let path = place.write(".codex/config.toml", "model = 'x'\n");
    place.set_up(Client::Codex);
    let other_port = place.plan_at(Client::Codex, "http://127.0.0.1:9");
    other_port.unwrap().apply(&place.records(), &[]).unwrap();
    assert!(fs::read_to_string(&path).unwrap().contains("127.0.0.1:9/v1"));
    place.undo(Client::Codex);
    assert_eq!(fs::read_to_string(&path).unwrap(), "model = 'x'\n");
}

#[test]
fn edits_after_the_setup_are_kept_and_the_copy_stays() {
    let place = Place::new();
    let path = place.write(".claude/settings.json", "{\"model\": \"opus\"}\n");
    place.set_up(Client::Claude);
    let edited = fs::read_to_string(&path).unwrap().replace("opus", "sonnet");
    fs::write(&path, edited).unwrap();
    let undo = place.undo(Client::Claude);
    let file = &undo.files()[&path];
    assert!(file.is_edited);
    let left: Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
    assert_eq!(left, json!({ "model": "sonnet" }));
    let backup = file.backup.as_ref().unwrap();
    assert_eq!(fs::read_to_string(backup).unwrap(), "{\"model\": \"opus\"}\n");
    assert!(place.undo(Client::Claude).files().is_empty(), "it is undone once");
}

#[test]
fn the_server_that_a_setup_replaces_is_known() {
    let place = Place::new();
    let text = "model_provider = 'my'\n[model_providers.my]\nbase_url = 'http://gateway/v1'\n";
    let path = place.write(".codex/config.toml", text);
    let gateway = (Family::OpenAi, "http://gateway/v1".to_owned());
    assert_eq!(place.lost(Client::Codex), [gateway]);
    place.set_up(Client::Codex);
    assert!(fs::read_to_string(path).unwrap().contains("base_url = \"http://127.0.0.1:8787/v1\""));
    let replaced = Client::Codex.replaced(&place.records(), &place.environment).unwrap();
    assert_eq!(replaced, [(Family::OpenAi, "http://gateway/v1".to_owned())]);
    let launch = Client::Codex.launch(&Proxy::at(URL), &place.environment).unwrap();
    assert_eq!(launch.args, ["-c", "model_providers.my.base_url=\"http://127.0.0.1:8787/v1\""]);
}

#[test]
fn a_run_keeps_the_server_of_the_user() {
    let mut place = Place::new();
    let upstreams = |place: &Place, client: Client| {
        client.upstreams(&place.records(), &place.environment).unwrap()
    };
    assert_eq!(upstreams(&place, Client::Claude), []);
    place.write(".claude/settings.json", r#"{"env":{"ANTHROPIC_BASE_URL":"http://gateway"}}"#);
    place.environment.variables.insert("ANTHROPIC_BASE_URL".into(), "http://other".into());
    let gateway = (Family::Anthropic, "http://gateway".to_owned());
    assert_eq!(upstreams(&place, Client::Claude), [gateway]);
    let launch = Client::Claude.launch(&Proxy::at(URL), &place.environment).unwrap();
    assert_eq!(launch.args[0], "--settings");
    let settings: Value = serde_json::from_slice(&fs::read(&launch.args[1]).unwrap()).unwrap();
    assert_eq!(settings, json!({ "env": { "ANTHROPIC_BASE_URL": URL } }));
    let other = (Family::Anthropic, "http://other".to_owned());
    assert_eq!(upstreams(&place, Client::Sdk), [other]);
    place.set_up(Client::Codex);
    assert_eq!(upstreams(&place, Client::Codex), [], "what ctx wrote is not a server");
    let replaced = Client::Codex.replaced(&place.records(), &place.environment).unwrap();
    assert_eq!(replaced, [], "it had the public one");
}

#[test]
fn the_first_source_of_a_client_applies() {
    let mut place = Place::new();
    let claude = |url: &str| format!(r#"{{"env":{{"ANTHROPIC_BASE_URL":"http://{url}"}}}}"#);
    let applied = |place: &Place, client: Client| {
        let found = client.addresses(&place.environment).unwrap();
        found.into_iter().map(|address| address.url).collect::<Vec<_>>()
    };
    place.environment.variables.insert("ANTHROPIC_BASE_URL".into(), "http://variable".into());
    assert_eq!(applied(&place, Client::Claude), ["http://variable"]);
    for (file, url) in [
        (".claude/settings.json", "user"),
        ("project/.claude/settings.json", "shared"),
        ("project/.claude/settings.local.json", "local"),
        ("project/given.json", "given"),
    ] {
        place.environment.args = vec!["--settings=given.json".into()];
        place.write(file, &claude(url));
        assert_eq!(applied(&place, Client::Claude), [format!("http://{url}")]);
    }
    place.write(".aider.conf.yml", "openai-api-base: http://file\n");
    for (name, url) in [
        ("OPENAI_API_BASE", "file"),
        ("AIDER_OPENAI_API_BASE", "aider"),
        ("OPENAI_BASE_URL", "aider"),
    ] {
        place.environment.variables.insert(name.into(), "http://aider".into());
        assert_eq!(applied(&place, Client::Aider)[0], format!("http://{url}"));
    }
    let inline = r#"{"provider":{"openai":{"options":{"baseURL":"http://inline"}}}}"#;
    place.environment.variables.insert("OPENCODE_CONFIG_CONTENT".into(), inline.into());
    assert_eq!(applied(&place, Client::Opencode), ["http://inline"]);
    place.write(".gemini/.env", "GOOGLE_GEMINI_BASE_URL=http://user\n");
    assert_eq!(applied(&place, Client::Gemini), ["http://user"]);
    place.write("project/.env", "A=1\n");
    assert!(applied(&place, Client::Gemini).is_empty(), "the nearest file alone is read");
    place.write("project/.gemini/.env", "GOOGLE_GEMINI_BASE_URL=http://project\n");
    let variable = ("GOOGLE_GEMINI_BASE_URL".into(), "http://variable".into());
    assert_eq!(applied(&place, Client::Gemini), ["http://project"]);
    place.environment.variables.extend([variable]);
    assert_eq!(applied(&place, Client::Gemini), ["http://variable"]);
}

#[test]
fn a_profile_and_an_argument_choose_the_provider_of_codex() {
    let mut place = Place::new();
    let provider = |name| format!("[model_providers.{name}]\nbase_url = 'http://{name}/v1'\n");
    let config = format!("model_provider = 'a'\n{}{}", provider("a"), provider("b"));
    place.write(".codex/config.toml", &config);
    let profile = format!("model_provider = 'c'\n{}", provider("c"));
    place.write(".codex/work.config.toml", &profile);
    for (args, name) in [
        (&["exec"][..], "a"),
        (&["exec", "-p", "work"], "c"),
        (&["--profile=work"], "c"),
        (&["--profile", "other"], "a"),
        (&["-p", "work", "-c", "model_provider=\"b\""], "b"),
        (&["--", "-p", "work"], "a"),
    ] {
        place.environment.args = args.iter().map(Into::into).collect();
        let upstreams = Client::Codex.upstreams(&place.records(), &place.environment).unwrap();
        assert_eq!(upstreams, [(Family::OpenAi, format!("http://{name}/v1"))], "{args:?}");
        let launch = Client::Codex.launch(&Proxy::at(URL), &place.environment).unwrap();
        let flag = format!("model_providers.{name}.base_url=\"{URL}/v1\"");
        assert_eq!(launch.args[..2], ["-c".into(), std::ffi::OsString::from(flag)], "{args:?}");
        assert_eq!(launch.args[2..], place.environment.args);
    }
}

#[test]
fn only_the_server_of_the_provider_in_use_is_replaced_for_a_run() {
    let mut place = Place::new();
    let two = r#"{"providers":{
        "a":{"baseUrl":"http://a/v1"}, "b":{"baseUrl":"http://b/v1"},
        "c":{"baseUrl":"http://c","api":"anthropic-messages"},
        "d":{"baseUrl":"http://d","api":"bedrock-converse-stream"}}}"#;
    let models = place.write(".pi/agent/models.json", two);
    let conflict = Client::Pi.upstreams(&place.records(), &place.environment).unwrap_err();
    assert_eq!(conflict.kind(), ErrorKind::Conflict);
    place.write(".pi/agent/settings.json", r#"{"defaultProvider":"b"}"#);
    for (args, name) in [(&[][..], "b"), (&["--model", "a/m"], "a"), (&["--provider", "b"], "b")] {
        place.environment.args = args.iter().map(Into::into).collect();
        let upstreams = Client::Pi.upstreams(&place.records(), &place.environment).unwrap();
        let openai = (Family::OpenAi, format!("http://{name}/v1"));
        assert_eq!(upstreams, [openai, (Family::Anthropic, "http://c".to_owned())]);
        let launch = Client::Pi.launch(&Proxy::at(URL), &place.environment).unwrap();
        let text = fs::read_to_string(&launch.args[1]).unwrap();
        let urls = format!(r#"{{"{name}":"{URL}/v1","c":"{URL}","google":"{URL}/v1beta"}}"#);
        assert!(text.contains(&urls), "{text}");
    }
    assert_eq!(fs::read_to_string(models).unwrap(), two);
}

#[test]
fn openclaw_gets_a_configuration_that_includes_the_users() {
    let mut place = Place::new();
    let error = Client::Openclaw.launch(&Proxy::at(URL), &place.environment).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Capability);
    let config = r#"{models: {providers: {a: {baseUrl: 'http://a/v1', apiKey: 'k'}}}}"#;
    let path = place.write(".openclaw-work/openclaw.json", config);
    place.environment.args = vec!["--profile".into(), "work".into()];
    let roots = "OPENCLAW_INCLUDE_ROOTS";
    place.environment.variables.insert(roots.into(), "/shared".into());
    let launch = Client::Openclaw.launch(&Proxy::at(URL), &place.environment).unwrap();
    let variable = |name| &launch.variables.iter().find(|(known, _)| *known == name).unwrap().1;
    assert_eq!(*variable("OPENCLAW_STATE_DIR"), path.parent().unwrap());
    assert!(std::env::split_paths(variable(roots)).any(|root| root == path.parent().unwrap()));
    assert!(std::env::split_paths(variable(roots)).any(|root| root == Path::new("/shared")));
    let written = fs::read_to_string(variable("OPENCLAW_CONFIG_PATH")).unwrap();
    let written: Value = serde_json::from_str(&written).unwrap();
    let url = format!("{URL}/v1");
    let expected =
        json!({ "$include": path, "models": { "providers": { "a": { "baseUrl": url } } } });
    assert_eq!(written, expected, "no key is copied");
    assert_eq!(fs::read_to_string(path).unwrap(), config);
}

#[test]
fn servers_with_different_keys_do_not_become_one() {
    let place = Place::new();
    let two =
        r#"{"models":{"providers":{"a":{"baseUrl":"http://a/v1"},"b":{"baseUrl":"http://b/v1"}}}}"#;
    place.write(".openclaw/openclaw.json", two);
    let error = place.plan_at(Client::Openclaw, URL).unwrap_err();
    assert!(error.to_string().contains("several servers"), "{error}");
}

#[test]
fn a_file_that_changes_after_the_plan_is_not_restored() {
    let place = Place::new();
    let path = place.write(".qwen/.env", "A=1\n");
    place.set_up(Client::Qwen);
    let undo = Undo::plan(&place.records(), Client::Qwen, &Scope::User).unwrap();
    fs::write(&path, "A=2\n").unwrap();
    assert_eq!(undo.apply(&place.records()).unwrap_err().kind(), ErrorKind::Conflict);
    assert_eq!(fs::read_to_string(path).unwrap(), "A=2\n");
}

#[test]
fn a_proxy_is_known_by_each_name_of_this_machine() {
    let proxy = Proxy::at("http://127.0.0.1:878");
    for (url, is_it) in [
        ("http://localhost:878/v1", true),
        ("http://[::1]:878", true),
        ("http://127.0.0.1:8787/v1", false),
        ("http://10.0.0.1:878", false),
        ("no url", false),
    ] {
        assert_eq!(proxy.is_at(url), is_it, "{url}");
    }
}

#[cfg(unix)]
#[test]
fn links_and_permissions_stay_and_read_only_files_are_errors() {
    use std::os::unix::fs::{PermissionsExt, symlink};
    let place = Place::new();
    let target = place.write("dotfiles/aider.yml", "model: x\n");
    let link = place.environment.home.join(".aider.conf.yml");
    symlink(&target, &link).unwrap();
    fs::set_permissions(&target, fs::Permissions::from_mode(0o640)).unwrap();
    place.set_up(Client::Aider);
    assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
    assert!(fs::read_to_string(&target).unwrap().contains("openai-api-base"));
    assert_eq!(fs::metadata(&target).unwrap().permissions().mode() & 0o777, 0o640);
    place.undo(Client::Aider);
    fs::set_permissions(&target, fs::Permissions::from_mode(0o440)).unwrap();
    let error = place.plan_at(Client::Aider, URL).unwrap_err();
    assert!(error.to_string().contains("read-only"), "{error}");
}

#[test]
fn a_file_that_changes_after_the_plan_is_not_written() {
    let place = Place::new();
    let path = place.write(".qwen/.env", "A=1\n");
    let setup = place.plan_at(Client::Qwen, URL).unwrap();
    fs::write(&path, "A=2\n").unwrap();
    let error = setup.apply(&place.records(), &[]).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Conflict);
    assert_eq!(fs::read_to_string(path).unwrap(), "A=2\n");
    assert!(Undo::plan(&place.records(), Client::Qwen, &Scope::User).unwrap().files().is_empty());
}

#[test]
fn a_damaged_record_is_an_error_that_names_the_copies() {
    let place = Place::new();
    place.set_up(Client::Gemini);
    fs::write(place.records().join("0001-gemini.json"), "{").unwrap();
    let error = Undo::plan(&place.records(), Client::Gemini, &Scope::User).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Corrupt);
    assert!(error.hint_text().unwrap().contains("0001-gemini-*.backup"), "{error:?}");
    // Other clients do not need it.
    let config = place.write(".codex/config.toml", "a = 1\n");
    place.set_up(Client::Codex);
    let clients = Undo::clients(&place.records(), &Scope::User).unwrap();
    assert_eq!(clients.into_iter().collect::<Vec<_>>(), [Client::Codex, Client::Gemini]);
    place.undo(Client::Codex);
    assert_eq!(fs::read_to_string(config).unwrap(), "a = 1\n");
}

#[test]
fn settings_that_the_user_changed_after_the_setup_are_named() {
    let place = Place::new();
    let path = place.write(".claude/settings.json", "{}");
    place.set_up(Client::Claude);
    let edited = fs::read_to_string(&path).unwrap().replace(URL, "http://mine");
    fs::write(&path, edited).unwrap();
    let undo = place.undo(Client::Claude);
    assert_eq!(undo.files()[&path].kept, ["env.ANTHROPIC_BASE_URL"]);
    let left = fs::read_to_string(&path).unwrap();
    assert!(left.contains("http://mine") && !left.contains("TOOL_SEARCH"), "{left}");
}

#[test]
fn providers_of_opencode_are_found_in_each_of_its_configurations() {
    let mut place = Place::new();
    let provider = |npm: &str, url: &str| json!({ "npm": npm, "options": { "baseURL": url } });
    let global = json!({ "model": "corp/m", "provider": {
        "corp": provider("@ai-sdk/openai-compatible", "http://corp/v1"),
        "bedrock": provider("@ai-sdk/amazon-bedrock", "http://bedrock"),
        "lab": { "npm": "@ai-sdk/anthropic" },
    }});
    place.write(".config/opencode/opencode.json", &global.to_string());
    place.write(
        "project/opencode.json",
        r#"{"provider":{"lab":{"options":{"baseURL":"http://lab/v1"}}}}"#,
    );
    let inline =
        json!({ "theme": "x", "provider": { "own": provider("@ai-sdk/openai", "http://own/v1") } });
    let variable = "OPENCODE_CONFIG_CONTENT";
    place.environment.variables.insert(variable.into(), inline.to_string().into());
    for (args, openai, used) in [
        (&["run", "hi"][..], "corp", Some("http://corp/v1")),
        (&["run", "-m", "own/m"], "own", Some("http://own/v1")),
        (&["run", "--model=openai/gpt"], "openai", None),
    ] {
        place.environment.args = args.iter().map(Into::into).collect();
        let upstreams = Client::Opencode.upstreams(&place.records(), &place.environment).unwrap();
        let lab = (Family::Anthropic, "http://lab/v1".to_owned());
        let openai_server = used.map(|url| (Family::OpenAi, url.to_owned()));
        assert_eq!(upstreams.len(), 1 + usize::from(used.is_some()), "{upstreams:?}");
        assert!([Some(lab), openai_server].iter().flatten().all(|found| upstreams.contains(found)));
        let launch = Client::Opencode.launch(&Proxy::at(URL), &place.environment).unwrap();
        let content: Value = serde_json::from_str(launch.variables[0].1.to_str().unwrap()).unwrap();
        let url = |name: &str| content["provider"][name]["options"]["baseURL"].as_str();
        let version_1 = format!("{URL}/v1");
        assert_eq!(url("lab"), Some(version_1.as_str()));
        for name in ["corp", "own", "openai"] {
            assert_eq!(url(name) == Some(&version_1), name == openai, "{args:?} {name}");
        }
        assert_eq!((url("anthropic"), url("bedrock")), (None, None));
        assert_eq!(content["theme"], "x");
    }
}

#[test]
fn a_run_after_a_setup_sends_each_api_to_the_server_that_it_had() {
    let place = Place::new();
    let providers = json!({ "model": "groq/m", "provider": {
        "groq": { "npm": "@ai-sdk/openai-compatible", "options": { "baseURL": "http://a/v1" } },
        "gateway": { "npm": "@ai-sdk/anthropic", "options": { "baseURL": "http://b/v1" } },
    }});
    place.write(".config/opencode/opencode.json", &providers.to_string());
    let servers =
        [(Family::OpenAi, "http://a/v1".to_owned()), (Family::Anthropic, "http://b/v1".to_owned())];
    for server in place.lost(Client::Opencode) {
        assert!(servers.contains(&server));
    }
    place.set_up(Client::Opencode);
    assert_eq!(place.lost(Client::Opencode), []);
    let mut replaced = Client::Opencode.replaced(&place.records(), &place.environment).unwrap();
    replaced.sort_by_key(|(_, url)| url.clone());
    assert_eq!(replaced, servers);
}

#[test]
fn all_configurations_of_opencode_count() {
    let mut place = Place::new();
    let gateway = json!({ "model": "gw/m", "provider": {
        "gw": { "npm": "@ai-sdk/openai", "options": { "baseURL": "http://mine/v1" } } } });
    place.write(".config/opencode/opencode.json", &gateway.to_string());
    place.write("project/.git/HEAD", "");
    place.environment.folder = place.environment.home.join("project/deep");
    let url = |url: &str| json!({ "provider": { "gw": { "options": { "baseURL": url } } } });
    place.environment.variables.insert("WORK".into(), "http://work".into());
    for (file, text, applied) in [
        (".config/opencode/opencode.jsonc", url("http://more/v1"), "http://more/v1"),
        ("opencode.json", url("http://above/v1"), "http://more/v1"),
        ("project/opencode.json", url("{env:WORK}/v1"), "http://work/v1"),
        ("project/deep/.opencode/opencode.json", url("http://deep/v1"), "http://deep/v1"),
    ] {
        place.write(file, &text.to_string());
        let upstreams = Client::Opencode.upstreams(&place.records(), &place.environment).unwrap();
        assert_eq!(upstreams, [(Family::OpenAi, applied.to_owned())], "{file}");
    }
    assert!(place.set_up(Client::Opencode).files()[0].path.ends_with("opencode/opencode.jsonc"));
}

#[test]
fn servers_in_env_files_are_known() {
    let mut place = Place::new();
    place.write("project/.git/HEAD", "");
    place.environment.folder = place.environment.home.join("project/deep");
    for (client, name) in [(Client::Aider, "OPENAI_API_BASE"), (Client::Qwen, "OPENAI_BASE_URL")] {
        place.write("project/.env", &format!("{name}=http://a/v1\n"));
        let upstreams = client.upstreams(&place.records(), &place.environment).unwrap();
        assert_eq!(upstreams, [(Family::OpenAi, "http://a/v1".to_owned())], "{client}");
        assert_eq!(place.lost(client), if client == Client::Aider { upstreams } else { vec![] });
    }
}

#[test]
fn a_new_env_file_does_not_hide_the_one_that_applies() {
    let place = Place::new();
    let project = Scope::Project(place.environment.folder.clone());
    for client in [Client::Gemini, Client::Qwen] {
        let path = |scope: &Scope| {
            let files = client.base_url_files(scope, &Proxy::at(URL), &place.environment);
            files.map(|files| files[0].path.clone())
        };
        assert!(path(&project).unwrap().ends_with(format!("project/.{}/.env", client.id())));
        place.write(&format!(".{}/.env", client.id()), "KEY=k\n");
        assert_eq!(path(&project).unwrap_err().kind(), ErrorKind::Capability);
        let own = place.write("project/.env", "KEY=k\n");
        assert_eq!(path(&project).unwrap(), own);
        fs::remove_file(own).unwrap();
    }
}

#[test]
fn the_addresses_of_arguments_and_of_the_proxy_itself_are_known() {
    let mut place = Place::new();
    let config = "model_provider = 'a'\n[model_providers.a]\nname = 'a'\n";
    place.write(".codex/config.toml", config);
    place.environment.args =
        ["-c", "model_providers.a.base_url='http://b/v1'", "exec"].map(Into::into).to_vec();
    let upstreams = Client::Codex.upstreams(&place.records(), &place.environment).unwrap();
    assert_eq!(upstreams, [(Family::OpenAi, "http://b/v1".to_owned())]);
    let launch = Client::Codex.launch(&Proxy::at(URL), &place.environment).unwrap();
    let flag = format!("model_providers.a.base_url=\"{URL}/v1\"");
    assert_eq!(launch.args, ["-c", &flag, "exec"].map(std::ffi::OsString::from));
    place.write(".codex/config.toml", "model_provider = 'ollama'\n");
    let error = Client::Codex.launch(&Proxy::at(URL), &place.environment).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Capability);
    place.write(".qwen/.env", "OPENAI_BASE_URL=http://localhost:8787/v1/\n");
    assert_eq!(place.lost(Client::Qwen), [], "it is the proxy");
    place.write(".claude/settings.json", r#"{"env":{"ANTHROPIC_BASE_URL":""}}"#);
    assert_eq!(place.lost(Client::Claude), [], "it is none");
    place.environment.variables.insert("ANTHROPIC_BASE_URL".into(), "http://g".into());
    assert_eq!(place.lost(Client::Claude), [(Family::Anthropic, "http://g".to_owned())]);
}

#[test]
fn a_copy_that_was_changed_is_not_restored() {
    let place = Place::new();
    place.write(".codex/config.toml", "a = 1\n");
    place.set_up(Client::Codex);
    fs::write(place.records().join("0001-codex-0.backup"), "b = 2\n").unwrap();
    let error = Undo::plan(&place.records(), Client::Codex, &Scope::User).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Corrupt);
}

#[test]
fn the_server_before_a_setup_is_known_wherever_its_address_was() {
    let mut place = Place::new();
    place.environment.variables.insert("ANTHROPIC_BASE_URL".into(), "http://gw".into());
    place.set_up(Client::Claude);
    place.environment.variables.clear();
    let replaced = |place: &Place, client: Client| {
        client.replaced(&place.records(), &place.environment).unwrap()
    };
    assert_eq!(replaced(&place, Client::Claude), [(Family::Anthropic, "http://gw".to_owned())]);
    // A setup of a project applies below its folder.
    place.write("project/.env", "OPENAI_BASE_URL=http://team/v1\n");
    let project = Scope::Project(place.environment.folder.clone());
    let files = Client::Qwen.base_url_files(&project, &Proxy::at(URL), &place.environment).unwrap();
    let setup = Setup::plan(Client::Qwen, project, files, &place.records()).unwrap();
    let servers = setup.lost_servers(&place.records(), &place.environment).unwrap();
    setup.apply(&place.records(), &servers).unwrap();
    place.environment.folder = place.environment.folder.join("deep");
    let team = (Family::OpenAi, "http://team/v1".to_owned());
    assert_eq!(replaced(&place, Client::Qwen), [team]);
    assert_eq!(Client::Qwen.upstreams(&place.records(), &place.environment).unwrap(), []);
}

#[test]
fn what_is_no_other_server_is_not_taken_for_one() {
    let place = Place::new();
    for url in ["", "http://localhost:8787/v1/", "https://api.openai.com/v1"] {
        place.write(".aider.conf.yml", &format!("openai-api-base: {url}\n"));
        assert_eq!(place.lost(Client::Aider), [], "{url}");
    }
    for text in [
        "\"openai-api-base\": http://a\n",
        "  openai-api-base: http://a\n",
        "openai-api-base:\n  http://a\n",
        "openai-api-base: *a\n",
    ] {
        place.write(".aider.conf.yml", text);
        let error = Client::Aider.upstreams(&place.records(), &place.environment).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Capability, "{text}");
    }
    place.write(".aider.conf.yml", "openai-api-base: null\n");
    assert_eq!(Client::Aider.addresses(&place.environment).unwrap(), []);
    place.write(".env", "OPENAI_API_KEY=k\n");
    assert!(place.set_up(Client::Qwen).files()[0].path.ends_with(".env"));
    assert!(!place.environment.home.join(".qwen").exists(), "a new file would hide the other");
}

#[test]
fn aider_gets_a_file_that_wins_over_its_own() {
    let mut place = Place::new();
    place.write("project/.env", "AIDER_OPENAI_API_BASE=http://a/v1\n");
    place.write("project/more.env", "OPENAI_API_KEY=k\nOPENAI_BASE_URL=http://b/v1\n");
    for (args, server) in
        [(&["--env-file", "more.env", "--yes"][..], "http://b/v1"), (&[], "http://a/v1")]
    {
        place.environment.args = args.iter().map(Into::into).collect();
        let upstreams = Client::Aider.upstreams(&place.records(), &place.environment).unwrap();
        assert_eq!(upstreams, [(Family::OpenAi, server.to_owned())]);
        let launch = Client::Aider.launch(&Proxy::at(URL), &place.environment).unwrap();
        assert_eq!(
            (launch.args[0].to_str(), launch.args.len()),
            (Some("--env-file"), args.len().max(2))
        );
        let text = fs::read_to_string(&launch.args[1]).unwrap();
        assert!(text.contains(&format!("OPENAI_BASE_URL={URL}/v1\n")), "{text}");
        assert_eq!(text.contains("OPENAI_API_KEY=k"), !args.is_empty());
    }
}
