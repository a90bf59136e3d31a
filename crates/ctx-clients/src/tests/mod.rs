//! Setups and their undo, of all clients.

mod servers;

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
        let servers = setup.servers_before(&self.records(), &self.environment).unwrap();
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
fn a_file_that_changes_after_the_plan_is_not_restored() {
    let place = Place::new();
    let path = place.write(".qwen/.env", "A=1\n");
    place.set_up(Client::Qwen);
    let undo = Undo::plan(&place.records(), Client::Qwen, &Scope::User).unwrap();
    fs::write(&path, "A=2\n").unwrap();
    assert_eq!(undo.apply(&place.records()).unwrap_err().kind(), ErrorKind::Conflict);
    assert_eq!(fs::read_to_string(path).unwrap(), "A=2\n");
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
fn a_copy_that_was_changed_is_not_restored() {
    let place = Place::new();
    place.write(".codex/config.toml", "a = 1\n");
    place.set_up(Client::Codex);
    fs::write(place.records().join("0001-codex-0.backup"), "b = 2\n").unwrap();
    let error = Undo::plan(&place.records(), Client::Codex, &Scope::User).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Corrupt);
}
