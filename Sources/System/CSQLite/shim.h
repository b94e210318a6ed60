// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <sqlite3.h>

// SQLITE_TRANSIENT is a cast of -1 to a function pointer, which Swift cannot import.
static inline int approval_sqlite3_bind_blob(sqlite3_stmt *statement, int index, const void *bytes, int count) {
  return sqlite3_bind_blob(statement, index, bytes, count, SQLITE_TRANSIENT);
}
static inline int approval_sqlite3_bind_text(sqlite3_stmt *statement, int index, const char *text, int count) {
  return sqlite3_bind_text(statement, index, text, count, SQLITE_TRANSIENT);
}
// SQLite counts its memory under a lock of all threads. Does nothing after the first connection was opened.
static inline int approval_sqlite3_count_no_memory(void) { return sqlite3_config(SQLITE_CONFIG_MEMSTATUS, 0); }
// Waits until the journal or write-ahead log is durable. Does nothing if it is not open.
static inline int approval_sqlite3_sync_journal(sqlite3 *database) {
  sqlite3_file *file = 0;
  int code = sqlite3_file_control(database, "main", SQLITE_FCNTL_JOURNAL_POINTER, &file);
  if (code != SQLITE_OK || file == 0 || file->pMethods == 0) return code;
  return file->pMethods->xSync(file, SQLITE_SYNC_NORMAL);
}
// Disables triggers and views, which are programs in the file.
static inline int approval_sqlite3_forbid_programs(sqlite3 *database) {
  int code = sqlite3_db_config(database, SQLITE_DBCONFIG_ENABLE_TRIGGER, 0, (int *)0);
  return code != SQLITE_OK ? code : sqlite3_db_config(database, SQLITE_DBCONFIG_ENABLE_VIEW, 0, (int *)0);
}
// Extends the journal or write-ahead log to `size` bytes with zeros and waits until they are durable. Does nothing if
// it is not open, or longer. The caller must hold the database's write lock.
static inline int approval_sqlite3_extend_journal(sqlite3 *database, sqlite3_int64 size) {
  static const char zeros[4096];
  sqlite3_file *file = 0;
  sqlite3_int64 end = 0;
  int code = sqlite3_file_control(database, "main", SQLITE_FCNTL_JOURNAL_POINTER, &file);
  if (code != SQLITE_OK || file == 0 || file->pMethods == 0) return code;
  code = file->pMethods->xFileSize(file, &end);
  if (code != SQLITE_OK || end >= size) return code;
  while (code == SQLITE_OK && end < size) {
    sqlite3_int64 count = (sqlite3_int64)sizeof zeros - end % (sqlite3_int64)sizeof zeros;
    if (count > size - end) count = size - end;
    code = file->pMethods->xWrite(file, zeros, (int)count, end);
    end += count;
  }
  return code == SQLITE_OK ? file->pMethods->xSync(file, SQLITE_SYNC_NORMAL) : code;
}
// Keeps the write-ahead log and its index when the last connection closes.
static inline int approval_sqlite3_keep_log(sqlite3 *database) {
  int keep = 1;
  return sqlite3_file_control(database, "main", SQLITE_FCNTL_PERSIST_WAL, &keep);
}
