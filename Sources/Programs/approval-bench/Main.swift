// SPDX-License-Identifier: Apache-2.0
import ArgumentParser
import BenchPage

@main
struct Main {
  static func main() async { await BenchCommand.main() }
}
