use std::{
    env, fs,
    io::{self, Write},
    net::TcpListener,
    path::{Path, PathBuf},
    process::{self, Child, Command, Stdio},
    sync::atomic::{AtomicUsize, Ordering},
    thread,
    time::{Duration, Instant},
};

/// What nginx allows on each path, in requests a second.
pub(crate) const RATE: u32 = 20;

/// How many may come too early, besides the one that is due. On a busy machine requests arrive up to half a second late, and then
/// together; these must not be refused.
pub(crate) const BURST: u32 = 15;

/// A real nginx on a free loopback port, with `nginx.conf` and all its files in a temporary folder. Both end with this value.
pub(crate) struct Nginx {
    child: Child,
    port: u16,
    folder: Folder,
}

impl Nginx {
    /// `None` if the tests that need it are to be left out.
    pub(crate) fn start() -> Option<Self> {
        if env::var_os("THROTTLE_SKIP_NGINX").is_some_and(|skip| skip == "1") {
            let thread = thread::current();
            let test = thread.name().unwrap_or("a test");
            // Not `eprintln`, which is not shown for tests that pass.
            let _ = writeln!(io::stderr(), "{test} skipped: THROTTLE_SKIP_NGINX=1");
            return None;
        }
        let program = find()
            .expect("nginx is not installed: run tests/run, or set THROTTLE_SKIP_NGINX=1 to skip");
        // Somebody else may take the free port before nginx does.
        for _ in 0..5 {
            let mut nginx = Self::spawn(&program);
            match nginx.wait_until_up() {
                Ok(()) => return Some(nginx),
                Err(said) if said.contains("Address already in use") => {}
                Err(said) => panic!("{} did not start: {said}", program.display()),
            }
        }
        panic!("no free port for nginx");
    }

    pub(crate) fn url(&self, path: &str) -> String {
        format!("http://127.0.0.1:{}{path}", self.port)
    }

    fn spawn(program: &Path) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let folder = Folder::new();
        let config = include_str!("nginx.conf")
            .replace("@PORT@", &port.to_string())
            .replace("@RATE@", &RATE.to_string())
            .replace("@BURST@", &BURST.to_string());
        fs::write(folder.0.join("nginx.conf"), config).unwrap();
        fs::create_dir(folder.0.join("files")).unwrap();
        for file in ["429", "503", "503-later"] {
            fs::write(folder.0.join("files").join(file), "ok").unwrap();
        }
        let output = fs::File::create(folder.0.join("output")).unwrap();
        drop(listener);
        let child = Command::new(program)
            .arg("-p")
            .arg(&folder.0)
            .args(["-c", "nginx.conf"])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(output)
            .spawn()
            .unwrap();
        Self {
            child,
            port,
            folder,
        }
    }

    /// The error is what nginx said.
    fn wait_until_up(&mut self) -> Result<(), String> {
        // A port that answers could be somebody else's. The file is written when nginx has the port.
        let file = self.folder.0.join("nginx.pid");
        let id = self.child.id().to_string();
        let start = Instant::now();
        while fs::read_to_string(&file).map_or(true, |text| text.trim() != id) {
            if self.child.try_wait().unwrap().is_some() || start.elapsed().as_secs() >= 20 {
                return Err(fs::read_to_string(self.folder.0.join("output")).unwrap());
            }
            thread::sleep(Duration::from_millis(5));
        }
        Ok(())
    }
}

impl Drop for Nginx {
    fn drop(&mut self) {
        // It has already ended if it could not start.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A temporary folder that is removed with this value.
struct Folder(PathBuf);

impl Folder {
    fn new() -> Self {
        static NUMBER: AtomicUsize = AtomicUsize::new(0);
        let number = NUMBER.fetch_add(1, Ordering::SeqCst);
        let name = format!("tower-throttle-nginx-{}-{number}", process::id());
        let path = env::temp_dir().join(name);
        fs::create_dir(&path).unwrap();
        Self(path)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn find() -> Option<PathBuf> {
    let path = env::var_os("PATH").unwrap_or_default();
    // Where Debian puts it is not in everybody's PATH.
    env::split_paths(&path)
        .chain([PathBuf::from("/usr/sbin")])
        .map(|folder| folder.join("nginx"))
        .find(|program| program.is_file())
}
