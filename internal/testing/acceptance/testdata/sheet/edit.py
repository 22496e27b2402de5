# SPDX-FileCopyrightText: The Watchkeeper Authors
# SPDX-License-Identifier: Apache-2.0

"""edit.py FILE PROFILE: opens an .xlsx file in LibreOffice, writes cells and saves it.

The cells are read from standard input, as JSON: [[sheet, cell, what a user types]]. The
script then prints the types and formulas of all cells in the file as LibreOffice opened it,
as JSON: {sheet: {cell: [type, formula]}}.
"""

import json
import os
import signal
import subprocess
import sys
import time

import uno
from com.sun.star.beans import PropertyValue
from com.sun.star.connection import NoConnectException

path, profile = sys.argv[1:3]
pipe = "watchkeeper-" + "".join(c for c in profile if c.isalnum())[-40:]
office = subprocess.Popen(
    ["soffice", "--headless", "--norestore", "--nologo", "-env:UserInstallation=file://" + profile, f"--accept=pipe,name={pipe};urp"],
    stdout=subprocess.DEVNULL,
    start_new_session=True,  # it has child processes, which are ended with it
)
try:
    local = uno.getComponentContext()
    resolver = local.ServiceManager.createInstanceWithContext("com.sun.star.bridge.UnoUrlResolver", local)
    while True:
        try:
            context = resolver.resolve(f"uno:pipe,name={pipe};urp;StarOffice.ComponentContext")
            break
        except NoConnectException:
            if office.poll() is not None:
                sys.exit("soffice ended")
            time.sleep(0.1)
    desktop = context.ServiceManager.createInstanceWithContext("com.sun.star.frame.Desktop", context)
    url = uno.systemPathToFileUrl(path)
    document = desktop.loadComponentFromURL(url, "_blank", 0, (PropertyValue(Name="Hidden", Value=True),))
    cells = {}
    for sheet in document.Sheets:
        cursor = sheet.createCursor()
        cursor.gotoEndOfUsedArea(False)
        area = cursor.RangeAddress
        cells[sheet.Name] = {}
        for row in range(area.EndRow + 1):
            for column in range(area.EndColumn + 1):
                cell = sheet.getCellByPosition(column, row)
                if cell.Type.value != "EMPTY":
                    cells[sheet.Name][f"{column},{row}"] = [cell.Type.value, cell.Formula]
    for name, cell, text in json.load(sys.stdin):
        document.Sheets.getByName(name).getCellRangeByName(cell).setFormula(text)
    document.calculateAll()
    document.storeToURL(url, (PropertyValue(Name="FilterName", Value="Calc MS Excel 2007 XML"),))
    document.close(True)
    try:
        desktop.terminate()
    except Exception:  # the connection ends first
        pass
    office.wait(60)
    print(json.dumps(cells))
finally:
    if office.poll() is None:
        os.killpg(office.pid, signal.SIGKILL)
        office.wait()
