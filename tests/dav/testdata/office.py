"""Opens a URL in LibreOffice without a window. At the line "save" it adds to the text and saves it, at "close" it closes it."""

import subprocess
import sys
import tempfile
import time

import uno
from com.sun.star.beans import PropertyValue
from com.sun.star.connection import NoConnectException

profile = tempfile.mkdtemp()
pipe = "holdfast" + profile.replace("/", "")
office = subprocess.Popen([
    "soffice", "--headless", "--norestore", "--nologo", "--accept=pipe,name=%s;urp;" % pipe, "-env:UserInstallation=file://" + profile,
])
try:
    local = uno.getComponentContext()
    resolver = local.ServiceManager.createInstanceWithContext("com.sun.star.bridge.UnoUrlResolver", local)
    while True:
        try:
            context = resolver.resolve("uno:pipe,name=%s;urp;StarOffice.ComponentContext" % pipe)
            break
        except NoConnectException:
            if office.poll() is not None:
                sys.exit("LibreOffice ended with %d" % office.returncode)
            time.sleep(0.1)
    desktop = context.ServiceManager.createInstanceWithContext("com.sun.star.frame.Desktop", context)
    options = (PropertyValue("FilterName", 0, "Text", 0),)
    document = desktop.loadComponentFromURL(sys.argv[1], "_blank", 0, options)
    if document is None:
        sys.exit("LibreOffice did not open it")
    for line in sys.stdin:
        if line.strip() == "save":
            document.Text.insertString(document.Text.End, "from the office", False)
            document.store()
        else:
            document.close(True)
    desktop.terminate()
finally:
    office.wait(60)
